package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"tarry/internal/hook"
)

// Files of the log below the directory of the stores. The names are on disk; the first
// is the one that Consul and rqlite use.
const (
	boltFile = "raft.db"
	markFile = "raft.db.watermark"
)

// ErrInUse is the failure to open a log that another process has open.
var ErrInUse = errors.New("another process has the file open: stop it and start the node again")

// boltOptions returns safe options. The freelist is not synced: a commit writes less,
// and bbolt rebuilds the freelist from the tree at each start, so a damaged one cannot
// hand out a page in use. A freelist in a map stays fast after a long log is truncated.
// The initial mapping takes only address space and saves remapping each time the file
// doubles.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:         time.Second, // for the lock; with 0 it would wait indefinitely
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: 512 << 20,
	}
}

// boltLog is a log in raft-boltdb. It adds what raft-wal already has: no gaps, and no
// silent loss of committed transactions.
type boltLog struct {
	bolt  *raftboltdb.BoltStore
	store raft.LogStore // bolt, or what a test puts around it
	file  *os.File      // to read the meta pages that bbolt writes, and to allocate blocks
	mark  *watermark

	reserved int64 // size of the file when its blocks were last allocated

	broken atomic.Bool // bbolt has panicked and may never release its locks

	writing sync.Mutex // held during a write transaction
	mu      sync.RWMutex
	bounds  bounds // changed with writing held too: shrunk before the transaction, extended after it
}

// bounds are the first and the last index of a log; both are 0 when it is empty.
type bounds struct{ first, last uint64 }

func (b bounds) empty() bool                { return b.last == 0 }
func (b bounds) contains(index uint64) bool { return index >= b.first && index <= b.last && !b.empty() }

var _ raft.MonotonicLogStore = (*boltLog)(nil)

// openBolt opens the raft-boltdb log in dir. used reports whether Raft has run on it: then
// its files must exist.
func openBolt(dir string, disk *Disk, used bool) (_ raft.LogStore, _ func() error, err error) {
	path := filepath.Join(cmp.Or(disk.BoltDir, dir), boltFile)
	l := new(boltLog)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the log %s: %w", path, err), l.close())
		}
	}()
	if err := l.openMark(path, dir, disk.Records, used); err != nil {
		return nil, nil, err
	}
	if err := l.check(path, used); err != nil {
		return nil, nil, err
	}
	if err := l.open(path, disk.WrapBolt); err != nil {
		return nil, nil, err
	}
	// A file whose watermark has a transaction was created completely.
	if err := errors.Join(l.updateMark(), l.mark.sync()); err != nil {
		return nil, nil, err
	}
	return l, l.close, nil
}

func (l *boltLog) openMark(path, dir string, files vfs.FS, used bool) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l.mark, err = openWatermark(files, dir, markFile, 2, used || err == nil && info.Size() > 0)
	return err
}

// check reads the file before bbolt does. It removes a file that was not created
// completely.
func (l *boltLog) check(path string, used bool) error {
	if l.mark.held.seq == 0 && used {
		return fmt.Errorf("%w: its watermark has no transaction, but the node has taken part in elections", ErrFileDamaged)
	}
	if l.mark.held.seq == 0 {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: it is missing", ErrFileDamaged)
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		var found commitMark
		if found, err = checkBolt(f, info.Size()); err == nil {
			err = l.mark.checkBolt(found)
		}
	}
	return errors.Join(err, f.Close())
}

func (l *boltLog) open(path string, wrap func(string, raft.LogStore) raft.LogStore) error {
	err := l.run(func() (err error) {
		l.bolt, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions(), NoSync: hook.Mutant(hook.SkipFsync)})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrInUse
	}
	if err != nil {
		return err
	}
	l.store = l.bolt
	if wrap != nil {
		l.store = wrap(path, l.bolt)
	}
	if l.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return err
	}
	return l.run(func() (err error) {
		if l.bounds.first, err = l.store.FirstIndex(); err == nil {
			l.bounds.last, err = l.store.LastIndex()
		}
		return err
	})
}

// updateMark writes the newest transaction to the watermark.
func (l *boltLog) updateMark() error {
	meta, err := newestMeta(l.file)
	if err != nil {
		return err
	}
	if err := l.allocate(); err != nil {
		return err
	}
	return l.mark.store(commitMark{seq: meta.txid, last: l.currentBounds().last})
}

// allocate allocates the disk blocks of the file after it has grown. bbolt extends the
// file by 16 MiB at a time without allocating blocks. On a disk that other programs fill,
// an append would then meet a full disk before adds are refused. If the file system
// cannot allocate, or the disk is full already, the next write of bbolt reports it.
func (l *boltLog) allocate() error {
	info, err := l.file.Stat()
	if err != nil || info.Size() == l.reserved {
		return err
	}
	allocate(l.file, info.Size())
	l.reserved = info.Size()
	return nil
}

// run calls f, which calls bbolt. bbolt panics on a damaged page, and faults if a page of
// its mapping cannot be read from the disk; run returns both as errors.
func (l *boltLog) run(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		l.broken.Store(true)
		if fault, ok := p.(interface {
			runtime.Error
			Addr() uintptr
		}); ok {
			err = fmt.Errorf("a page of the file cannot be read from the disk: %w", fault)
			return
		}
		err = fmt.Errorf("%w: bbolt: %v", ErrDamaged, p)
	}()
	return f()
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l *boltLog) IsMonotonic() bool { return true }

func (l *boltLog) currentBounds() bounds {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.bounds
}

func (l *boltLog) setBounds(b bounds) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds = b
}

// FirstIndex implements raft.LogStore.
func (l *boltLog) FirstIndex() (uint64, error) { return l.currentBounds().first, nil }

// LastIndex implements raft.LogStore.
func (l *boltLog) LastIndex() (uint64, error) { return l.currentBounds().last, nil }

// GetLog implements raft.LogStore. It does not wait for a write.
func (l *boltLog) GetLog(index uint64, entry *raft.Log) error {
	if !l.currentBounds().contains(index) {
		return raft.ErrLogNotFound
	}
	return l.run(func() error {
		err := l.store.GetLog(index, entry)
		if err == nil || errors.Is(err, raft.ErrLogNotFound) && !l.currentBounds().contains(index) { // just deleted
			return err
		}
		// Raft takes ErrLogNotFound for an entry that was never there, so err is not wrapped.
		return fmt.Errorf("entry %d: %w: %v", index, ErrDamaged, err)
	})
}

// StoreLog implements raft.LogStore.
func (l *boltLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore, in one transaction.
func (l *boltLog) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	b := l.currentBounds()
	if b.empty() {
		b = bounds{first: entries[0].Index, last: entries[0].Index - 1}
	}
	for _, e := range entries {
		if e.Index != b.last+1 {
			return fmt.Errorf("entry %d does not follow entry %d, the last one", e.Index, b.last)
		}
		b.last = e.Index
	}
	if err := l.run(func() error { return l.store.StoreLogs(entries) }); err != nil {
		return err
	}
	l.setBounds(b)
	return l.updateMark()
}

// DeleteRange implements raft.LogStore. The range must reach one end of the log.
func (l *boltLog) DeleteRange(first, last uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	b := l.currentBounds()
	switch {
	case b.empty() || first > last || last < b.first || first > b.last:
		return nil
	case first <= b.first && last >= b.last:
		b = bounds{}
	case first <= b.first:
		b.first = last + 1
	case last >= b.last:
		b.last = first - 1
	default:
		return fmt.Errorf("entries %d to %d are in the middle of the log, which goes from %d to %d", first, last, b.first, b.last)
	}
	l.setBounds(b)
	if err := l.run(func() error { return l.store.DeleteRange(first, last) }); err != nil {
		return err
	}
	return l.updateMark()
}

func (l *boltLog) close() error {
	var err error
	if l.bolt != nil && !l.broken.Load() {
		err = l.bolt.Close()
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	if l.mark != nil {
		err = errors.Join(err, l.mark.close())
	}
	return err
}
