package fsm

import (
	"fmt"
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
	if err != nil || !strings.HasPrefix(m.PathBase(name), manifestPrefix) {
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

// How Pebble names a manifest, and the file that says which one is in force.
const (
	manifestPrefix = "MANIFEST-"
	manifestMarker = "manifest"
)

// storeManifest is a manifest that tells the ledger what of it is on disk. One
// goroutine at a time uses it.
type storeManifest struct {
	vfs.File
	ledger *logLedger
	number uint64
	held   content
	synced content // guarded by the ledger
}

func (l *logLedger) newManifest(number uint64, f vfs.File) vfs.File {
	m := &storeManifest{File: f, ledger: l, number: number}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.manifest = m
	return m
}

// moved hears that a marker was made, which puts a manifest in force. The marker is
// made durable before the ledger may name that manifest.
func (l *logLedger) moved(marker string) error {
	if err := syncDir(l.FS, l.dir); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.manifest; m != nil && strings.HasSuffix(marker, fmt.Sprintf(".%s%06d", manifestPrefix, m.number)) {
		l.notes.manifest, l.notes.held = m.number, m.synced
	}
	return nil
}

func (m *storeManifest) Write(p []byte) (int, error) {
	m.held.add(p) // before the write: a file may change what it is given
	return m.File.Write(p)
}

func (m *storeManifest) Sync() error { return m.sync(m.File.Sync) }

func (m *storeManifest) SyncData() error { return m.sync(m.File.SyncData) }

func (m *storeManifest) sync(do func() error) error {
	if err := do(); err != nil {
		return err
	}
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.synced = m.held
	if m.ledger.notes.manifest == m.number {
		m.ledger.notes.held = m.held
	}
	return nil
}
