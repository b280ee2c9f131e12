package logstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"

	"tarry/internal/hook"
)

// ErrClosed is returned by stores that were closed.
var ErrClosed = errors.New("the log stores are closed")

// failStop is shared by both stores: the failure of one stops the other.
type failStop struct {
	hungAfter time.Duration
	fatal     func(error)
	told      sync.Once

	mu  sync.RWMutex
	err error // the first failure, or ErrClosed
}

func (s *failStop) failure() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.err
}

func (s *failStop) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = ErrClosed
	}
}

// latch keeps the first failure and returns what is kept. After a close nothing
// counts as a failure any more.
func (s *failStop) latch(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
	}
	err = s.err
	s.mu.Unlock()
	if first {
		s.tell(err)
	}
	return err
}

func (s *failStop) tell(err error) { s.told.Do(func() { s.fatal(err) }) }

// wakeGrace is how long the watchdog waits once more before it reports a hung write:
// after the process itself was suspended for a while (SIGSTOP, a frozen container) the
// time limit has passed although the disk was not the cause.
const wakeGrace = time.Second

// write runs one write of a store under the watchdog. It returns when the write
// has ended, never before.
func (s *failStop) write(store, op string, f func() error) error {
	if err := s.failure(); err != nil {
		return err
	}
	var ended atomic.Bool
	hung := time.AfterFunc(s.hungAfter, func() {
		time.AfterFunc(wakeGrace, func() {
			if !ended.Load() {
				s.tell(fmt.Errorf("%s: %s has been in flight for over %v: the disk hangs", store, op, s.hungAfter))
			}
		})
	})
	err := f()
	ended.Store(true)
	hung.Stop()
	if err != nil {
		return s.latch(fmt.Errorf("%s: %s: %w", store, op, err))
	}
	return nil
}

// read runs one read of a store. What is absent is no failure.
func (s *failStop) read(store, op string, f func() error) error {
	if err := s.failure(); err != nil {
		return err
	}
	err := f()
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, errNotFound) {
		return err
	}
	return s.latch(fmt.Errorf("%s: %s: %w", store, op, err))
}

// logStore is a fail-stop raft.LogStore.
type logStore struct {
	store   raft.LogStore
	stop    *failStop
	sizes   *sizes
	latency *latency
}

var _ raft.MonotonicLogStore = (*logStore)(nil)

// IsMonotonic tells Raft that the log may have no gaps.
func (l *logStore) IsMonotonic() bool {
	m, ok := l.store.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (l *logStore) FirstIndex() (index uint64, err error) {
	err = l.read("first index", func() error { index, err = l.store.FirstIndex(); return err })
	return index, err
}

func (l *logStore) LastIndex() (index uint64, err error) {
	err = l.read("last index", func() error { index, err = l.store.LastIndex(); return err })
	return index, err
}

func (l *logStore) GetLog(index uint64, entry *raft.Log) error {
	return l.read("read entry", func() error {
		if err := l.store.GetLog(index, entry); err != nil {
			return err
		}
		if entry.Index != index {
			return fmt.Errorf("entry %d: %w: it says that it is entry %d", index, ErrDamaged, entry.Index)
		}
		return unseal(entry)
	})
}

func (l *logStore) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// MaxEntryBytes bounds the data of an entry. raft-wal writes larger ones, and calls
// them damaged when it reads them: the node could not start again. The rest is for
// what stands beside the data.
const MaxEntryBytes = segment.MaxEntrySize - entrySlack

const entrySlack = 1 << 10

func (l *logStore) StoreLogs(entries []*raft.Log) error {
	for _, e := range entries {
		// No failure of the disk: nothing was written, and the log goes on.
		if size := len(e.Data) + len(e.Extensions); size > MaxEntryBytes {
			return fmt.Errorf("log: entry %d has %d bytes; it may have %d at most", e.Index, size, MaxEntryBytes)
		}
	}
	hook.Point(hook.BeforeLogStore)
	l.latency.begin(time.Now())
	defer func() { l.latency.end(time.Now()) }()
	if err := l.write("append", func() error { return l.store.StoreLogs(sealed(entries)) }); err != nil {
		return err
	}
	hook.Point(hook.AfterLogStore)
	l.sizes.appended(entries)
	return nil
}

func (l *logStore) DeleteRange(first, last uint64) error {
	hook.Point(hook.BeforeLogDelete)
	if err := l.write("truncate", func() error { return l.store.DeleteRange(first, last) }); err != nil {
		return err
	}
	hook.Point(hook.AfterLogDelete)
	l.sizes.deleted(first, last)
	return nil
}

func (l *logStore) read(op string, f func() error) error  { return l.stop.read("log", op, f) }
func (l *logStore) write(op string, f func() error) error { return l.stop.write("log", op, f) }

// stableStore is a fail-stop raft.StableStore.
type stableStore struct {
	store raft.StableStore
	stop  *failStop
}

func (s *stableStore) Set(key, value []byte) error {
	return s.stop.write("stable store", "set "+string(key), func() error { return s.store.Set(key, value) })
}

func (s *stableStore) SetUint64(key []byte, value uint64) error {
	return s.stop.write("stable store", "set "+string(key), func() error { return s.store.SetUint64(key, value) })
}

func (s *stableStore) Get(key []byte) (value []byte, err error) {
	err = s.stop.read("stable store", "get "+string(key), func() error { value, err = s.store.Get(key); return err })
	return value, err
}

func (s *stableStore) GetUint64(key []byte) (value uint64, err error) {
	err = s.stop.read("stable store", "get "+string(key), func() error { value, err = s.store.GetUint64(key); return err })
	return value, err
}
