package powerloss

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/hashicorp/raft-wal/types"
)

// disk is one node's disk during one life of the node. After a power loss the
// node's next life has another disk, made of what is left of this one; what the
// dead node still writes to this one is seen by nobody.
type disk struct {
	vfs.FS // what the node uses
	mem    *vfs.MemFS
	linkMu *sync.RWMutex // held while a clone is made: MemFS.Link cannot bear one

	mu   sync.Mutex
	left int    // writes until the power goes; 0: nothing is planned
	loss func() // takes the power; runs before that write
}

// plan takes the power after some more writes; 0: never.
func (d *disk) plan(writes int, loss func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.loss = writes, loss
}

// write counts one that is about to be made.
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

// remains is a disk with everything that was synced and some of the rest.
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

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// segments keeps the log's segments on a disk, as raft-wal/fs does: a file's name
// is synced with its first sync.
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
	return errors.Join(s.fs.Remove(s.fs.PathJoin(dir, name)), syncDir(s.fs, dir))
}

func (s segments) OpenReader(dir, name string) (types.ReadableFile, error) {
	return s.fs.Open(s.fs.PathJoin(dir, name))
}

func (s segments) OpenWriter(dir, name string) (types.WritableFile, error) {
	path := s.fs.PathJoin(dir, name)
	if _, err := s.fs.Stat(path); err != nil {
		return nil, err // OpenReadWrite would make the file
	}
	f, err := s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &segment{File: f, fs: s.fs, dir: dir, fresh: true}, nil
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
	return syncDir(s.fs, s.dir)
}

// cell is a file that is replaced whole, in one durable step.
type cell struct {
	fs        vfs.FS
	dir, name string
}

// load decodes the cell into v, which stays as it is when there is no file.
func (c cell) load(v any) error {
	f, err := c.fs.Open(c.fs.PathJoin(c.dir, c.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := io.ReadAll(f)
	return errors.Join(err, f.Close(), json.Unmarshal(data, v))
}

func (c cell) store(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := c.fs.PathJoin(c.dir, c.name)
	f, err := c.fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.fs.Rename(path+".tmp", path)
	}
	if err != nil {
		return err
	}
	return syncDir(c.fs, c.dir)
}

// metaStore keeps the log's list of segments.
type metaStore struct{ cell }

func (m metaStore) Load(string) (s types.PersistentState, err error) { return s, m.load(&s) }
func (m metaStore) CommitState(s types.PersistentState) error        { return m.store(s) }
func (metaStore) GetStable([]byte) ([]byte, error)                   { return nil, errors.New("not used") }
func (metaStore) SetStable(_, _ []byte) error                        { return errors.New("not used") }
func (metaStore) Close() error                                       { return nil }

// stableStore keeps term and vote.
type stableStore struct {
	cell
	mu      sync.Mutex
	bytes   map[string][]byte
	numbers map[string]uint64
}

type stableFile struct {
	Bytes   map[string][]byte
	Numbers map[string]uint64
}

func openStable(c cell) (*stableStore, error) {
	f := stableFile{Bytes: map[string][]byte{}, Numbers: map[string]uint64{}}
	err := c.load(&f)
	return &stableStore{cell: c, bytes: f.Bytes, numbers: f.Numbers}, err
}

func (s *stableStore) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[string(key)] = slices.Clone(value)
	return s.store(stableFile{s.bytes, s.numbers})
}

func (s *stableStore) SetUint64(key []byte, value uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[string(key)] = value
	return s.store(stableFile{s.bytes, s.numbers})
}

func (s *stableStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.bytes[string(key)]; ok {
		return v, nil
	}
	return nil, raftboltdb.ErrKeyNotFound
}

func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.numbers[string(key)]; ok {
		return v, nil
	}
	return 0, raftboltdb.ErrKeyNotFound
}
