package store

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// durableManifests makes the name of a new manifest durable with its first sync.
// Pebble syncs the file, then makes a marker that names it, and only then syncs
// the directory that holds both names. A file system that keeps names in another
// order than they were made may lose power with the marker and without the
// manifest: a store that cannot be opened. Manifests are rare, so the sync costs
// nothing.
type durableManifests struct{ vfs.FS }

func (d durableManifests) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	if err != nil || !strings.HasPrefix(d.PathBase(name), manifestBase) {
		return f, err
	}
	return &manifestFile{File: f, fs: d.FS, dir: d.PathDir(name)}, nil
}

// Unwrap lets the store find what it knows below.
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

// How Pebble names a manifest, and the file that says which one is in force.
const (
	manifestBase   = "MANIFEST-"
	manifestMarker = "manifest"
)

// pebbleManifest is the store's list of its tables and logs, as Pebble writes it. It
// records in the index what of it is on disk. One goroutine at a time uses it.
type pebbleManifest struct {
	vfs.File
	index  *walIndex
	number uint64
	prefix filePrefix
	synced filePrefix // guarded by index.mu
}

func (x *walIndex) newManifest(number uint64, f vfs.File) vfs.File {
	m := &pebbleManifest{File: f, index: x, number: number}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.manifest = m
	return m
}

// markerMade records the manifest that a new marker puts in force. The marker is
// made durable before the index may name that manifest.
func (x *walIndex) markerMade(marker string) error {
	if err := durable.SyncDir(x.FS, x.dir); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if m := x.manifest; m != nil && strings.HasSuffix(marker, fmt.Sprintf(".%s%06d", manifestBase, m.number)) {
		x.entries.manifest, x.entries.manifestPrefix = m.number, m.synced
	}
	return nil
}

func (m *pebbleManifest) Write(p []byte) (int, error) {
	m.prefix.add(p) // before the write: a file may change what it is given
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
	if m.index.entries.manifest == m.number {
		m.index.entries.manifestPrefix = m.prefix
	}
	return nil
}
