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

// failStop is shared by both stores: a failure of one stops the other.
type failStop struct {
	hungAfter time.Duration
	fatal     func(error)
	reported  sync.Once

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

// latch keeps and reports the first failure, and returns the one that is kept. After a
// close it returns ErrClosed and reports nothing.
func (s *failStop) latch(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
	}
	err = s.err
	s.mu.Unlock()
	if first {
		s.report(err)
	}
	return err
}

func (s *failStop) report(err error) { s.reported.Do(func() { s.fatal(err) }) }

// wakeGrace is how long the watchdog waits once more before it reports a hung write:
// after the process itself was suspended for a while (SIGSTOP, a frozen container) the
// time limit has passed although the disk was not the cause.
const wakeGrace = time.Second

// write runs one write of a store under the watchdog. It never returns before the write
// has ended.
func (s *failStop) write(store, op string, f func() error) error {
	if err := s.failure(); err != nil {
		return err
	}
	var ended atomic.Bool
	hung := time.AfterFunc(s.hungAfter, func() {
		time.AfterFunc(wakeGrace, func() {
			if !ended.Load() {
				s.report(fmt.Errorf("%s: %s has been in flight for over %v: the disk hangs", store, op, s.hungAfter))
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

// read runs one read of a store. An absent value is not a failure.
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

// IsMonotonic implements raft.MonotonicLogStore.
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
			return fmt.Errorf("entry %d: %w: its index is %d", index, ErrDamaged, entry.Index)
		}
		return verifyChecksum(entry)
	})
}

func (l *logStore) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// MaxEntryBytes bounds the data of an entry. raft-wal writes larger entries, but reports
// them as damaged when it reads them, so that the node could not restart.
const MaxEntryBytes = segment.MaxEntrySize - entrySlack

// entrySlack is for what the log stores beside the data.
const entrySlack = 1 << 10

func (l *logStore) StoreLogs(entries []*raft.Log) error {
	for _, e := range entries {
		// This does not stop the stores: nothing was written.
		if size := len(e.Data) + len(e.Extensions); size > MaxEntryBytes {
			return fmt.Errorf("log: entry %d has %d bytes; it may have %d at most", e.Index, size, MaxEntryBytes)
		}
	}
	hook.Point(hook.BeforeLogStore)
	l.latency.begin(time.Now())
	defer func() { l.latency.end(time.Now()) }()
	if err := l.write("append", func() error { return l.store.StoreLogs(withChecksums(entries)) }); err != nil {
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
