package powerloss

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft-wal/types"

	"tarry/internal/durable"
)

// disk is one node's disk during one run of the node. After a power loss the node's next run
// has another disk, made of what is left of this one. What the ended run still writes to this
// one has no effect.
type disk struct {
	vfs.FS // what the node uses
	mem    *vfs.MemFS
	linkMu *sync.RWMutex // held while a clone is made: MemFS.Link must not run then

	mu   sync.Mutex
	left int    // writes until the power loss; 0: none is planned
	loss func() // causes the power loss; called before that write
}

// plan causes a power loss after this many more writes; 0: never.
func (d *disk) plan(writes int, loss func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.loss = writes, loss
}

// write counts a write that is about to be made.
func (d *disk) write() {
	d.mu.Lock()
	last := d.left == 1
	d.left = max(d.left-1, 0)
	loss := d.loss
	d.mu.Unlock()
	if last {
		loss()
	}
}

func newDisk(mem *vfs.MemFS) *disk {
	d := &disk{mem: mem, linkMu: new(sync.RWMutex)}
	d.FS = errorfs.Wrap(linkFS{mem, d.linkMu}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			d.write()
		}
		return nil
	}))
	return d
}

// remains returns a disk with everything that was synced and some of the rest.
func (d *disk) remains(percent int, rng *rand.Rand) *vfs.MemFS {
	d.linkMu.Lock()
	defer d.linkMu.Unlock()
	return d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
}

type linkFS struct {
	vfs.FS
	mu *sync.RWMutex
}

func (l linkFS) Link(from, to string) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.FS.Link(from, to)
}

func (l linkFS) Unwrap() vfs.FS { return l.FS }

// segments keeps the log's segments on a disk, as raft-wal/fs does: the name of a file is
// synced with the first sync by the run that has created it, and never by later ones.
// SyncData, which is fdatasync, syncs what was written and the size that is needed to read
// it, and never the name.
type segments struct{ fs vfs.FS }

var _ types.VFS = segments{}

func (s segments) ListDir(dir string) ([]string, error) {
	names, err := s.fs.List(dir)
	slices.Sort(names)
	return names, err
}

func (s segments) Create(dir, name string, _ uint64) (types.WritableFile, error) {
	f, err := s.fs.Create(s.fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &segment{File: f, fs: s.fs, dir: dir, fresh: true}, nil
}

func (s segments) Delete(dir, name string) error {
	return errors.Join(s.fs.Remove(s.fs.PathJoin(dir, name)), durable.SyncDir(s.fs, dir))
}

func (s segments) OpenReader(dir, name string) (types.ReadableFile, error) {
	return s.fs.Open(s.fs.PathJoin(dir, name))
}

func (s segments) OpenWriter(dir, name string) (types.WritableFile, error) {
	path := s.fs.PathJoin(dir, name)
	if _, err := s.fs.Stat(path); err != nil {
		return nil, err // OpenReadWrite would create the file
	}
	f, err := s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &segment{File: f, fs: s.fs, dir: dir}, nil
}

type segment struct {
	vfs.File
	fs    vfs.FS
	dir   string
	fresh bool
}

func (s *segment) Sync() error {
	if err := s.File.Sync(); err != nil || !s.fresh {
		return err
	}
	s.fresh = false
	return durable.SyncDir(s.fs, s.dir)
}

func (s *segment) SyncData() error { return s.File.SyncData() }
