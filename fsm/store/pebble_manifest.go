package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// durableManifests makes the name of a new manifest durable with its first sync. Pebble
// syncs the file, makes a marker that names it, and only then syncs their directory. If
// the file system persists the names in another order, a power failure can leave the marker
// without the manifest, and the store cannot be opened. Manifests are rare, so the sync
// costs little.
type durableManifests struct{ vfs.FS }

func (d durableManifests) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	if err != nil || !strings.HasPrefix(d.PathBase(name), manifestBase) {
		return f, err
	}
	return &manifestFile{File: f, fs: d.FS, dir: d.PathDir(name)}, nil
}

// Unwrap returns the file system below, as Pebble expects.
func (d durableManifests) Unwrap() vfs.FS { return d.FS }

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
	if err := durable.SyncDir(f.fs, f.dir); err != nil {
		return err
	}
	f.named = true
	return nil
}

// Pebble's names of a manifest, and of the marker of the present one.
const (
	manifestBase   = "MANIFEST-"
	manifestMarker = "manifest"
)

// pebbleManifest is a manifest while Pebble writes it: the store's list of tables and logs.
// It records in the index how much of it is on disk. One goroutine at a time uses it.
type pebbleManifest struct {
	vfs.File
	index  *manifestIndex
	number uint64
	prefix filePrefix
	synced filePrefix // guarded by index.mu
}

func (x *manifestIndex) newManifest(number uint64, f vfs.File) vfs.File {
	m := &pebbleManifest{File: f, index: x, number: number}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.made = m
	return m
}

// markerMade records the manifest that a new marker names. The marker must be durable
// before the index names that manifest.
func (x *manifestIndex) markerMade(marker string) error {
	if err := durable.SyncDir(x.FS, x.dir); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if m := x.made; m != nil && strings.HasSuffix(marker, fmt.Sprintf(".%s%06d", manifestBase, m.number)) {
		x.number, x.prefix = m.number, m.synced
	}
	return nil
}

func (m *pebbleManifest) Write(p []byte) (int, error) {
	m.prefix.add(p) // before the write, which may change p
	return m.File.Write(p)
}

func (m *pebbleManifest) Sync() error { return m.sync(m.File.Sync) }

func (m *pebbleManifest) SyncData() error { return m.sync(m.File.SyncData) }

func (m *pebbleManifest) sync(do func() error) error {
	if err := do(); err != nil {
		return err
	}
	m.index.mu.Lock()
	defer m.index.mu.Unlock()
	m.synced = m.prefix
	if m.index.number == m.number {
		m.index.prefix = m.prefix
	}
	return nil
}
