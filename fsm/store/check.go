package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Tables counts tables of a store.
type Tables struct {
	Count int
	Bytes int64
}

// Check reads the files of the live generation of the directory in path, which must not be in
// use, and compares them with their checksums. It writes nothing, not even a lock, so that it
// also reads what must not change. It calls look with the store, unless a file is damaged or
// nothing was ever written. The error has all that is wrong, of damaged tables all. progress is
// called after each table.
func Check(path string, o Options, progress func(Tables) error, look func(*pebble.DB) error) error {
	o.FS, o.OnFatal = readOnly{o.FS}, func(error) {} // what fails is also returned
	name, err := liveGeneration(o.FS, path)
	if err != nil {
		return err
	}
	if name == "" {
		return checkNoData(o.FS, path)
	}
	d := &Dir{path: path, options: o.withDefaults(), live: name}
	if fresh, err := d.checkNames(); fresh || err != nil {
		return err
	}
	return d.Inspect(d.Live(), func(db *pebble.DB) error {
		if err := d.checkTables(db, progress); err != nil {
			return err
		}
		return look(db)
	})
}

// checkNames checks which files the live generation has before Pebble reads them. It reports
// whether nothing was ever written to it.
func (d *Dir) checkNames() (fresh bool, err error) {
	if err := checkMarker(d.options.FS, d.Live()); err != nil {
		return false, err
	}
	if _, err := openManifestIndex(d.options.FS, d.Live(), d.options.OnFatal); err != nil {
		return false, err
	}
	names, err := d.options.FS.List(d.Live())
	if err != nil {
		return false, err
	}
	for _, n := range names {
		if strings.HasPrefix(n, "marker."+manifestMarker+".") {
			return false, nil
		}
	}
	return true, nil
}

// checkTables verifies the checksums of all blocks of all tables: a lookup reads few of them. It
// has one table in memory at a time.
func (d *Dir) checkTables(db *pebble.DB, progress func(Tables) error) error {
	levels, err := db.SSTables()
	if err != nil {
		return err
	}
	var damage error
	filter := bloom.FilterPolicy(bitsPerKey)
	o := sstable.ReaderOptions{Merger: d.options.Merger, Filters: map[string]sstable.FilterPolicy{filter.Name(): filter}}
	var all Tables
	for _, level := range levels {
		for _, t := range level {
			name := fmt.Sprintf("%s.sst", t.BackingSSTNum)
			size, err := d.checkTable(name, o)
			if err != nil {
				damage = errors.Join(damage, fmt.Errorf("%s: %w", d.options.FS.PathJoin(d.Live(), name), err))
			}
			all.Count, all.Bytes = all.Count+1, all.Bytes+size
			if err := progress(all); err != nil {
				return errors.Join(damage, err)
			}
		}
	}
	return damage
}

func (d *Dir) checkTable(name string, o sstable.ReaderOptions) (size int64, err error) {
	f, err := checkedFooters{d.options.FS}.Open(d.options.FS.PathJoin(d.Live(), name), vfs.SequentialReadsOption)
	if err != nil {
		return 0, err
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	table, err := sstable.NewMemReader(data, o)
	if err != nil {
		return int64(len(data)), err
	}
	return int64(len(data)), errors.Join(table.ValidateBlockChecksums(), table.Close())
}

// readOnly is a file system whose files cannot be changed. It takes no locks.
type readOnly struct{ vfs.FS }

var errReadOnly = errors.New("nothing may be written here")

func (readOnly) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadOnly }

func (readOnly) Link(_, _ string) error { return errReadOnly }

func (readOnly) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadOnly
}

func (readOnly) Remove(string) error { return errReadOnly }

func (readOnly) RemoveAll(string) error { return errReadOnly }

func (readOnly) Rename(_, _ string) error { return errReadOnly }

func (readOnly) ReuseForWrite(_, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadOnly
}

func (readOnly) MkdirAll(string, fs.FileMode) error { return errReadOnly }

func (readOnly) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap returns the file system below, as Pebble expects.
func (r readOnly) Unwrap() vfs.FS { return r.FS }
