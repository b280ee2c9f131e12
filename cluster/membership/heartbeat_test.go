package membership

import (
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// termStore notes a term that comes after a later one. Like a disk it lets others
// run meanwhile.
type termStore struct {
	*raft.InmemStore

	mu       sync.Mutex
	term     uint64
	wentBack bool
}

func (s *termStore) SetUint64(key []byte, value uint64) error {
	if string(key) == "CurrentTerm" {
		runtime.Gosched()
		s.mu.Lock()
		s.wentBack = s.wentBack || value < s.term
		s.term = value
		s.mu.Unlock()
	}
	return s.InmemStore.SetUint64(key, value)
}

func TestALateHeartbeatDoesNotTakeTheTermBack(t *testing.T) {
	open := func() *raft.NetworkTransport {
		tr, err := raft.NewTCPTransport("127.0.0.1:0", nil, 2, 5*time.Second, io.Discard)
		require.NoError(t, err)
		t.Cleanup(func() { tr.Close(); tr.CloseStreams() })
		return tr
	}
	m, store := new(Membership), &termStore{InmemStore: raft.NewInmemStore()}
	here, old, next := open(), open(), open()
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = "n1", hclog.NewNullLogger()
	r, err := raft.NewRaft(c, &fsm{}, store, store, raft.NewDiscardSnapshotStore(), m.Witness(here))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
	m.raft.Store(r)

	call := func(from *raft.NetworkTransport, term, previous uint64) {
		req := &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("n2"), Addr: []byte(from.LocalAddr())},
			Term:      term, PrevLogEntry: previous, PrevLogTerm: previous,
		}
		// Refused or not: it has no such entry.
		_ = from.AppendEntries("n1", here.LocalAddr(), req, new(raft.AppendEntriesResponse))
	}
	for term := uint64(2); term < 1000; term += 2 {
		var calls sync.WaitGroup
		calls.Go(func() { call(old, term, 0) }) // a heartbeat
		calls.Go(func() { call(next, term+1, 1) })
		calls.Wait()
		require.Equal(t, term+1, r.CurrentTerm())
	}
	require.False(t, store.wentBack)
	call(old, 2000, 0)
	require.EqualValues(t, 2000, r.CurrentTerm(), "a node follows a new leader by its heartbeat alone")
}

func TestOnlyHeartbeatsThatLeaveTheTermAloneAreAnsweredBesideRaft(t *testing.T) {
	w := newTown(t)
	nodes := w.startTrio()
	follower := other(nodes, w.leader())
	now := follower.raft.CurrentTerm()
	require.True(t, follower.leavesTerm(now))
	require.True(t, follower.leavesTerm(now-1))
	require.False(t, follower.leavesTerm(now+1))
	require.False(t, w.leader().leavesTerm(now))
}
