package fsm

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	wal "github.com/cockroachdb/pebble/v2/record"
)

// ErrViewEnded is returned by a View whose state was closed or replaced by an
// installed snapshot. A new View sees what is there now.
var ErrViewEnded = errors.New("the state under this view was closed or replaced")

// Damaged says whether an error of this package means that files are not what was
// written.
func Damaged(err error) bool {
	// The store's own logs have other words for it.
	for _, damage := range []error{errNoMarker, errLogMissing, errChanged, errLedger, wal.ErrInvalidChunk, wal.ErrZeroedChunk, wal.ErrUnexpectedEOF} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return pebble.IsCorruptionError(err)
}

// store is one open database and the views that read from it. It can be closed
// under its views: their owners then get ErrViewEnded, and nobody waits for a
// view that was forgotten.
type store struct {
	path string
	db   *pebble.DB

	mu    sync.Mutex
	views map[*View]struct{} // nil once the store is closed
}

// errNoMarker is the failure of a store that has lost the file which names its
// manifest. Pebble would begin an empty store there, and replay into it whatever
// logs it finds: a state with a hole.
var errNoMarker = errors.New("the file that names the store's manifest (marker.manifest.*) is missing, but the store holds data")

// checkMarker refuses a store that holds data and has no marker. A store whose
// making broke off before its marker was there holds none.
func checkMarker(path string, o Options) error {
	names, err := o.FS.List(path)
	if err != nil {
		return nil // not made yet
	}
	holds := false
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "marker."+manifestMarker+"."):
			return nil
		case strings.HasSuffix(name, ".sst"):
			holds = true
		case strings.HasSuffix(name, ".log"):
			info, err := o.FS.Stat(o.FS.PathJoin(path, name))
			if err != nil {
				return fmt.Errorf("look at %s: %w", name, err)
			}
			holds = holds || info.Size() > 0
		}
	}
	if holds {
		return fmt.Errorf("open the store in %s: %w", path, errNoMarker)
	}
	return nil
}

func openStore(path string, o Options) (*store, error) {
	if err := checkMarker(path, o); err != nil {
		return nil, err
	}
	p := o.pebble()
	ledger, err := openLedger(p.FS, path, o.OnFatal)
	if err != nil {
		return nil, err
	}
	p.FS = ledger
	db, err := pebble.Open(path, p)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", path, err)
	}
	return &store{path: path, db: db, views: make(map[*View]struct{})}, nil
}

// view opens a snapshot of what is committed.
func (s *store) view(shard uint32) *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &View{shard: shard, store: s}
	if s.views != nil {
		v.snapshot = s.db.NewSnapshot()
		s.views[v] = struct{}{}
	}
	return v
}

func (s *store) forget(v *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.views, v)
}

// close ends the views, then closes the database. It waits for reads under way,
// which notice the end soon.
func (s *store) close() error {
	s.mu.Lock()
	views := s.views
	s.views = nil
	s.mu.Unlock()
	var err error
	for v := range views {
		err = errors.Join(err, v.end())
	}
	return errors.Join(err, s.db.Close())
}
