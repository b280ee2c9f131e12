package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	wal "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Damaged reports whether an error of a store means that files are not what was
// written.
func Damaged(err error) bool {
	// Pebble's errors for damage in its logs are not marked as corruption.
	for _, damage := range []error{errNoMarker, errLogMissing, errChanged, errManifestIndex, wal.ErrInvalidChunk, wal.ErrZeroedChunk, wal.ErrUnexpectedEOF} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return pebble.IsCorruptionError(err)
}

// Store is an open store. It has no write-ahead log: what was written is on disk with the next
// Flush, or when a memtable is full, in the order of the writes.
type Store struct {
	*pebble.DB
	index  *manifestIndex
	failed chan struct{} // closed with the first call of OnFatal
}

// Open opens the store in path, a generation of d, or makes an empty one. If files are
// missing or changed, it returns an error for which Damaged is true. It blocks for the
// replay of the write-ahead log that a store of version 0.1 has.
func (d *Dir) Open(path string) (*Store, error) {
	s := &Store{failed: make(chan struct{})}
	o := d.options
	once := sync.OnceFunc(func() { close(s.failed) })
	o.OnFatal = func(err error) { d.options.OnFatal(err); once() } // first the reason
	p := o.pebble()
	if err := checkMarker(d.options.FS, path); err != nil {
		return nil, err
	}
	var err error
	if s.index, err = openManifestIndex(p.FS, path, o.OnFatal); err != nil {
		return nil, err
	}
	p.FS = s.index
	if err := s.index.replayOldLogs(p); err != nil {
		return nil, fmt.Errorf("open the store in %s, which has logs of an earlier release: %w", path, err)
	}
	if s.DB, err = pebble.Open(path, p); err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", path, err)
	}
	if err := s.index.record(); err != nil { // Pebble has made a new manifest
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Flush makes all that was written before durable. It blocks until that is done or the store has
// failed, which OnFatal reports. Writes may go on meanwhile.
func (s *Store) Flush() error {
	select {
	case <-s.failed:
		return errFailed
	default:
	}
	done, err := s.AsyncFlush()
	if err != nil {
		return fmt.Errorf("flush the store: %w", err)
	}
	select {
	case <-done:
		return s.index.record()
	case <-s.failed: // Pebble would try again for ever
		return errFailed
	}
}

var errFailed = errors.New("flush the store: it has failed")

// Checkpoint makes a copy of the store in path, with all that was written before. It blocks as
// Flush does.
func (s *Store) Checkpoint(path string) error {
	if err := s.Flush(); err != nil {
		return err
	}
	return s.DB.Checkpoint(path) // of the tables
}

// Inspect opens the store in path, which must not be in use, for reading and calls look
// with it. It returns damage as an error, while a store from Open reports it to OnFatal.
func (d *Dir) Inspect(path string, look func(*pebble.DB) error) error {
	db, err := pebble.Open(path, &pebble.Options{
		FS: checkedFooters{d.options.FS}, ReadOnly: true, ErrorIfNotExists: true, CacheSize: 1 << 20, MaxOpenFiles: 64,
		Logger:        storeLogger{d.options.Logger, d.options.OnFatal},
		Merger:        d.options.Merger,
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}},
	})
	if err != nil {
		return err
	}
	return errors.Join(look(db), db.Close())
}

// errNoMarker: the file that names the manifest is lost. Pebble would make an empty store
// and replay the logs that it finds into it: a state with a gap.
var errNoMarker = errors.New("the file that names the store's manifest (marker.manifest.*) is missing, but the store holds data")

// checkMarker returns an error if a store has data but no marker. A store that crashed
// while it was made has neither.
func checkMarker(fsys vfs.FS, path string) error {
	names, err := fsys.List(path)
	if err != nil {
		return nil // not made yet
	}
	hasData := false
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "marker."+manifestMarker+"."):
			return nil
		case strings.HasSuffix(name, ".sst"):
			hasData = true
		case strings.HasSuffix(name, ".log"):
			info, err := fsys.Stat(fsys.PathJoin(path, name))
			if err != nil {
				return fmt.Errorf("size of %s: %w", name, err)
			}
			hasData = hasData || info.Size() > 0
		}
	}
	if hasData {
		return fmt.Errorf("open the store in %s: %w", path, errNoMarker)
	}
	return nil
}
