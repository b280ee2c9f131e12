package fsm

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifestFirst makes the name of a new manifest durable with its first sync.
// Pebble syncs the file, then makes a marker that names it, and only then syncs
// the directory that holds both names. A file system that keeps names in another
// order than they were made may lose power with the marker and without the
// manifest: a store that cannot be opened. Manifests are rare, so the sync costs
// nothing.
type manifestFirst struct{ vfs.FS }

func (m manifestFirst) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := m.FS.Create(name, c)
	if err != nil || !strings.HasPrefix(m.PathBase(name), "MANIFEST-") {
		return f, err
	}
	return &manifestFile{File: f, fs: m.FS, dir: m.PathDir(name)}, nil
}

// Unwrap lets the store find what it knows below.
func (m manifestFirst) Unwrap() vfs.FS { return m.FS }

type manifestFile struct {
	vfs.File
	fs    vfs.FS
	dir   string
	named bool // the name is durable
}

func (f *manifestFile) Sync() error {
	if err := f.File.Sync(); err != nil || f.named {
		return err
	}
	if err := syncDir(f.fs, f.dir); err != nil {
		return err
	}
	f.named = true
	return nil
}
