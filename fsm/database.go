package fsm

import (
	"errors"
	"sync"

	"tarry/fsm/store"
	"tarry/fsm/view"
)

// Damaged reports whether an error of this package means that files are not what
// was written.
func Damaged(err error) bool { return store.Damaged(err) }

// database is one open store and the views that read from it. It can be closed
// while views are open: their methods then return view.ErrEnded, so closing never waits
// for a view that was not closed.
type database struct {
	path string
	db   *store.Store

	mu    sync.Mutex
	views map[*view.View]struct{} // nil once the store is closed
}

func openDatabase(dir *store.Dir, path string) (*database, error) {
	db, err := dir.Open(path)
	if err != nil {
		return nil, err
	}
	return &database{path: path, db: db, views: make(map[*view.View]struct{})}, nil
}

// view opens a snapshot of what is committed.
func (s *database) view(shard uint32) *view.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.views == nil {
		return view.New(shard, nil, nil)
	}
	v := view.New(shard, s.db.NewSnapshot(), s.forget)
	s.views[v] = struct{}{}
	return v
}

func (s *database) forget(v *view.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.views, v)
}

// close ends the views, then closes the database. It waits for reads in progress,
// which end soon.
func (s *database) close() error {
	s.mu.Lock()
	views := s.views
	s.views = nil
	s.mu.Unlock()
	var err error
	for v := range views {
		err = errors.Join(err, v.End())
	}
	return errors.Join(err, s.db.Close())
}
