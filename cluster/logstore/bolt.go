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

// boltOptions are safe ones. The list of free pages is not written: a commit writes
// less, and the list is made anew from the tree at each start, so a damaged one
// cannot hand out a page in use. As a map it stays fast when a long log was cut. The
// mapping is address space only, and spares the file a new one each time it doubles.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:         time.Second, // for the lock; 0 would wait for ever
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: 512 << 20,
	}
}

// boltLog is a log that raft-boltdb keeps. It adds what raft-wal has by itself: no
// gaps, and no silent loss of what was committed.
type boltLog struct {
	bolt  *raftboltdb.BoltStore
	store raft.LogStore // bolt, or what a test puts around it
	file  *os.File      // to read the roots of what bbolt writes, and to reserve its blocks
	mark  *watermark

	reserved int64 // bytes of the file that have been given blocks, as far as the disk had them

	broken atomic.Bool // bbolt has panicked, and may hold its locks for ever

	writing sync.Mutex // held during a transaction that writes
	mu      sync.RWMutex
	bounds  bounds // changed with writing held too; shrunk before the transaction, extended after it
}

// bounds are the first and the last index of a log; both are 0 when it is empty.
type bounds struct{ first, last uint64 }

func (b bounds) empty() bool               { return b.last == 0 }
func (b bounds) contain(index uint64) bool { return index >= b.first && index <= b.last && !b.empty() }

var _ raft.MonotonicLogStore = (*boltLog)(nil)

// openBolt opens the log that raft-boltdb keeps in dir. used says that Raft has run on
// it: its files must be there then.
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
	// From here on the watermark tells a file that somebody counts on from one that was
	// never made whole.
	if err := errors.Join(l.committed(), l.mark.sync()); err != nil {
		return nil, nil, err
	}
	return l, l.close, nil
}

func (l *boltLog) openMark(path, dir string, files vfs.FS, used bool) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l.mark, err = openWatermark(files, dir, markFile, used || err == nil && info.Size() > 0)
	return err
}

// check reads the file before bbolt does. One that was never made whole is removed.
func (l *boltLog) check(path string, used bool) error {
	if l.mark.held.txid == 0 && used {
		return fmt.Errorf("%w: its watermark has no transaction, but the node has taken part in elections", ErrFileDamaged)
	}
	if l.mark.held.txid == 0 {
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
			err = l.mark.check(found)
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

// committed notes the newest transaction in the watermark.
func (l *boltLog) committed() error {
	meta, err := newestMeta(l.file)
	if err != nil {
		return err
	}
	if err := l.reserve(); err != nil {
		return err
	}
	return l.mark.store(commitMark{txid: meta.txid, last: l.now().last})
}

// reserve allocates the disk blocks of the file as far as it has grown. bbolt makes it
// longer by 16 MiB at a time without blocks, so on a disk that others fill, entries would
// meet a full disk before adds are refused. It does what the file system can: where that
// is nothing, or the disk is full already, a write of bbolt's reports it.
func (l *boltLog) reserve() error {
	info, err := l.file.Stat()
	if err != nil || info.Size() == l.reserved {
		return err
	}
	allocate(l.file, info.Size())
	l.reserved = info.Size()
	return nil
}

// run makes a call into bbolt, which panics on a damaged page, and faults where its
// mapping cannot be read from the disk.
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
			err = fmt.Errorf("the disk does not return a page of the file: %w", fault)
			return
		}
		err = fmt.Errorf("%w: bbolt: %v", ErrDamaged, p)
	}()
	return f()
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l *boltLog) IsMonotonic() bool { return true }

func (l *boltLog) now() bounds {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.bounds
}

func (l *boltLog) set(b bounds) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounds = b
}

// FirstIndex implements raft.LogStore.
func (l *boltLog) FirstIndex() (uint64, error) { return l.now().first, nil }

// LastIndex implements raft.LogStore.
func (l *boltLog) LastIndex() (uint64, error) { return l.now().last, nil }

// GetLog implements raft.LogStore. It does not wait for a write.
func (l *boltLog) GetLog(index uint64, entry *raft.Log) error {
	if !l.now().contain(index) {
		return raft.ErrLogNotFound
	}
	return l.run(func() error {
		err := l.store.GetLog(index, entry)
		if err == nil || errors.Is(err, raft.ErrLogNotFound) && !l.now().contain(index) { // just deleted
			return err
		}
		return fmt.Errorf("entry %d: %w: %v", index, ErrDamaged, err) // not that of an entry that was never there
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
	b := l.now()
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
	l.set(b)
	return l.committed()
}

// DeleteRange implements raft.LogStore. The range must reach one end of the log.
func (l *boltLog) DeleteRange(first, last uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	b := l.now()
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
	l.set(b)
	if err := l.run(func() error { return l.store.DeleteRange(first, last) }); err != nil {
		return err
	}
	return l.committed()
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
