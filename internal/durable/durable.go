// Package durable makes files and directories that survive a power failure: it syncs their
// content and their names. It uses Pebble's vfs, so that tests can use a disk in memory.
// Start at Replace.
package durable

import (
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Replace replaces a file's content in one step: after a crash the file has its old content
// or the new one. A temporary file, path with ".tmp" at its end, may remain.
func Replace(fsys vfs.FS, path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(fsys, fsys.PathDir(path))
}

// MkdirAll makes a directory and its missing parents, for their owner alone. It syncs their
// names, without which a power failure would remove them and all below.
func MkdirAll(fsys vfs.FS, path string) error {
	if _, err := fsys.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := fsys.PathDir(path)
	if above != path {
		if err := MkdirAll(fsys, above); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return SyncDir(fsys, above)
}

// SyncDir makes the names in a directory durable.
func SyncDir(fsys vfs.FS, path string) error {
	d, err := fsys.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
