package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	wal "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Damaged reports whether an error of a store means that files are not what was
// written.
func Damaged(err error) bool {
	// Pebble's errors for damage in its logs are not marked as corruption.
	for _, damage := range []error{errNoMarker, errWALMissing, errChanged, errWALIndex, wal.ErrInvalidChunk, wal.ErrZeroedChunk, wal.ErrUnexpectedEOF} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return pebble.IsCorruptionError(err)
}

// Open opens the store in path, a generation of d, or makes an empty one. If files are
// missing or changed, it returns an error for which Damaged is true. It blocks for the
// replay of the write-ahead log.
func (d *Dir) Open(path string) (*pebble.DB, error) {
	p := d.options.pebble()
	if err := checkMarker(d.options.FS, path); err != nil {
		return nil, err
	}
	index, err := openWALIndex(p.FS, path, d.options.OnFatal)
	if err != nil {
		return nil, err
	}
	p.FS = index
	db, err := pebble.Open(path, p)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", path, err)
	}
	return db, nil
}

// Inspect opens the store in path, which must not be in use, for reading and calls look
// with it. It returns damage as an error, while a store from Open reports it to OnFatal.
func (d *Dir) Inspect(path string, look func(*pebble.DB) error) error {
	db, err := pebble.Open(path, &pebble.Options{
		FS: d.options.FS, ReadOnly: true, ErrorIfNotExists: true, CacheSize: 1 << 20, MaxOpenFiles: 64,
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
