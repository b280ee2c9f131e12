package logstore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Stores {
	t.Helper()
	// A busy disk takes longer than the watchdog allows for a hundred megabytes.
	s, err := Open(dir, Options{HungAfter: time.Hour, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	require.NoError(t, err)
	return s
}

func entries(first, last uint64, size int) []*raft.Log {
	var es []*raft.Log
	for i := first; i <= last; i++ {
		es = append(es, &raft.Log{Index: i, Term: 3, Type: raft.LogCommand, Data: make([]byte, size)})
	}
	return es
}

func TestStoresKeepWhatTheyWereGiven(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shard-0", "raft")
	s := open(t, dir)
	require.NoError(t, s.Log.StoreLogs(entries(1, 10, 100)))
	require.NoError(t, s.Stable.SetUint64([]byte("CurrentTerm"), 3))
	require.NoError(t, s.Close())

	s = open(t, dir)
	defer func() { require.NoError(t, s.Close()) }()
	last, err := s.Log.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 10, last)
	var e raft.Log
	require.NoError(t, s.Log.GetLog(7, &e))
	require.EqualValues(t, 7, e.Index)
	require.ErrorIs(t, s.Log.GetLog(11, &e), raft.ErrLogNotFound)
	term, err := s.Stable.GetUint64([]byte("CurrentTerm"))
	require.NoError(t, err)
	require.EqualValues(t, 3, term)
	_, err = s.Stable.Get([]byte("absent"))
	require.EqualError(t, err, "not found", "Raft compares the text")
	require.True(t, s.Log.(raft.MonotonicLogStore).IsMonotonic())
	require.NoError(t, s.Err())
}

// Raft writes a vote as two values. Whenever the process ends, the vote on disk is one
// that the node cast.
func TestVoteIsOneRecord(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := s.Stable.GetUint64([]byte(keyVoteTerm))
	require.EqualError(t, err, "not found")
	require.NoError(t, s.Stable.SetUint64([]byte(keyVoteTerm), 5))
	require.NoError(t, s.Stable.Set([]byte(keyVoteCandidate), []byte("node-a")))
	require.NoError(t, s.Stable.SetUint64([]byte(keyVoteTerm), 6)) // and here it dies
	require.NoError(t, s.Close())

	s = open(t, dir)
	defer s.Close()
	term, err := s.Stable.GetUint64([]byte(keyVoteTerm))
	require.NoError(t, err)
	candidate, err := s.Stable.Get([]byte(keyVoteCandidate))
	require.NoError(t, err)
	require.EqualValues(t, 5, term)
	require.Equal(t, "node-a", string(candidate))
}

func TestEntriesForCountsTheNewestBytes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	big := 256 << 10
	require.EqualValues(t, 1, s.EntriesFor(0))
	require.NoError(t, s.Log.StoreLogs(entries(1, 400, big))) // 100 MiB
	require.InDelta(t, 64, s.EntriesFor(16<<20), 8)
	// After an idle time with small entries the large ones still count.
	for i := uint64(401); i < 10_401; i += 1000 {
		require.NoError(t, s.Log.StoreLogs(entries(i, i+999, 60)))
	}
	require.InDelta(t, 10_064, s.EntriesFor(17<<20), 16)
	require.NoError(t, s.Log.DeleteRange(1, 5000)) // at its start
	require.InDelta(t, 10_064, s.EntriesFor(17<<20), 16)
	require.NoError(t, s.Log.DeleteRange(5001, 10_400))
	require.NoError(t, s.Log.StoreLogs(entries(20_001, 20_128, big)))
	require.InDelta(t, 32, s.EntriesFor(8<<20), 8)
	require.NoError(t, s.Close())

	s = open(t, dir)
	defer s.Close()
	require.InDelta(t, 64, s.EntriesFor(16<<20), 8, "sampled from the entries on disk")
}

// broken is a log store and stable store whose calls can be made to fail.
type broken struct {
	raft.InmemStore
	fail  map[string]error
	calls int
	hang  chan struct{}
}

func (b *broken) do(op string) error {
	b.calls++
	if b.hang != nil {
		<-b.hang
	}
	return b.fail[op]
}

func (b *broken) FirstIndex() (uint64, error)          { return 1, b.do("first") }
func (b *broken) LastIndex() (uint64, error)           { return 1, b.do("last") }
func (b *broken) GetLog(i uint64, e *raft.Log) error   { e.Index = i; return b.do("get-log") }
func (b *broken) StoreLogs([]*raft.Log) error          { return b.do("append") }
func (b *broken) DeleteRange(uint64, uint64) error     { return b.do("truncate") }
func (b *broken) Set([]byte, []byte) error             { return b.do("set") }
func (b *broken) SetUint64([]byte, uint64) error       { return b.do("set") }
func (b *broken) Get([]byte) ([]byte, error)           { return nil, b.do("get") }
func (b *broken) GetUint64(key []byte) (uint64, error) { return 0, b.do("get") }

func stop(b *broken, o Options) *Stores {
	s := new(Stores)
	if err := s.wrap(b, b, o); err != nil {
		panic(err)
	}
	return s
}

var errDisk = errors.New("input/output error")

func TestFirstFailureStopsBothStores(t *testing.T) {
	key := []byte("k")
	calls := map[string]func(*Stores) error{
		"append":   func(s *Stores) error { return s.Log.StoreLog(&raft.Log{Index: 2}) },
		"truncate": func(s *Stores) error { return s.Log.DeleteRange(1, 1) },
		"get-log":  func(s *Stores) error { return s.Log.GetLog(1, new(raft.Log)) },
		"first":    func(s *Stores) error { _, err := s.Log.FirstIndex(); return err },
		"last":     func(s *Stores) error { _, err := s.Log.LastIndex(); return err },
		"set":      func(s *Stores) error { return s.Stable.SetUint64(key, 1) },
		"get":      func(s *Stores) error { _, err := s.Stable.GetUint64(key); return err },
	}
	for op, call := range calls {
		t.Run(op, func(t *testing.T) {
			var reported []error
			b := &broken{fail: map[string]error{}}
			s := stop(b, Options{HungAfter: defaultHungAfter, Fatal: func(err error) { reported = append(reported, err) }})
			require.NoError(t, call(s))
			b.fail[op] = errDisk
			first := call(s)
			require.ErrorIs(t, first, errDisk)
			require.Equal(t, []error{first}, reported)
			require.Equal(t, first, s.Err())

			// The disk works again, but nothing may reach it.
			delete(b.fail, op)
			before := b.calls
			for other, call := range calls {
				require.Equal(t, first, call(s), other)
			}
			require.Equal(t, before, b.calls)
			require.Len(t, reported, 1, "reported once")
		})
	}
}

func TestAbsenceIsNoFailure(t *testing.T) {
	b := &broken{fail: map[string]error{}}
	s := stop(b, Options{HungAfter: defaultHungAfter, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	b.fail["get-log"], b.fail["get"] = raft.ErrLogNotFound, errNotFound
	require.ErrorIs(t, s.Log.GetLog(1, new(raft.Log)), raft.ErrLogNotFound)
	_, err := s.Stable.Get([]byte("k"))
	require.ErrorIs(t, err, errNotFound)
	require.NoError(t, s.Err())
}
