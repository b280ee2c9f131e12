package ackguard

import (
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// termStore records a term that is stored after a later one. Like a disk it lets other
// goroutines run.
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

func TestALateHeartbeatDoesNotLowerTheTerm(t *testing.T) {
	g, store := newGuard(t), &termStore{InmemStore: raft.NewInmemStore()}
	here, old, next := openGuarded(t, g), openTransport(t, settings(t)), openTransport(t, settings(t))
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = "n1", hclog.NewNullLogger()
	r, err := raft.NewRaft(c, noState{}, store, store, raft.NewDiscardSnapshotStore(), here)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
	g.Start(r)

	call := func(from *raftwire.Transport, term, previous uint64) {
		req := &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("n2"), Addr: []byte(from.LocalAddr())},
			Term:      term, PrevLogEntry: previous, PrevLogTerm: previous,
		}
		// Refused or not: it has no such entry.
		_ = from.AppendEntries("n1", transport.Target("n1", here.LocalAddr()), req, new(raft.AppendEntriesResponse))
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
	require.True(t, g.keepsTerm(2000))
	require.True(t, g.keepsTerm(1999))
	require.False(t, g.keepsTerm(2001))
}

// On a leader, and on a node whose Raft is not set yet, Raft's own goroutine replies.
func TestAHeartbeatDoesNotChangeALeadersTerm(t *testing.T) {
	g := newGuard(t)
	require.False(t, g.keepsTerm(1))
	store := raft.NewInmemStore()
	_, tr := raft.NewInmemTransport("")
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = "n1.a", hclog.NewNullLogger()
	r, err := raft.NewRaft(c, noState{}, store, store, raft.NewDiscardSnapshotStore(), tr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
	g.Start(r)
	require.NoError(t, r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: "n1.a", Address: tr.LocalAddr()}}}).Error())
	require.True(t, <-r.LeaderCh())
	require.False(t, g.keepsTerm(r.CurrentTerm()))

	// Raft would read all of the state of a deposed leader, and do nothing else meanwhile.
	configuration := raft.EncodeConfiguration(r.GetConfiguration().Configuration())
	responses := make(chan raft.RPCResponse, 1)
	require.Greater(t, r.CurrentTerm(), uint64(1))
	require.False(t, g.acceptsRPC(&transport.CallerAddr{Addr: new(net.TCPAddr), ServerID: "n2.b"}, raft.RPC{RespChan: responses, Command: &raft.InstallSnapshotRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("n2.b")}, Term: 1, SnapshotVersion: raft.SnapshotVersionMax, Configuration: configuration, Size: 1 << 40,
	}}))
	require.Equal(t, raft.RPCResponse{Response: &raft.InstallSnapshotResponse{Term: r.CurrentTerm()}}, <-responses)

	// With one voter no other is asked, and its position is its own ack.
	require.NoError(t, r.Barrier(0).Error())
	term, err := g.ConfirmLeader(t.Context())
	require.NoError(t, err)
	require.Equal(t, r.CurrentTerm(), term)
	require.Equal(t, []Ack{{ServerID: "n1.a", Term: term, Index: r.LastIndex()}}, g.Known())
}
