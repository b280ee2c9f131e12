package membership

import (
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/ackguard"
	"tarry/cluster/raftwire"
)

// An ack for more than a node has would end it.
func TestAcksOfANonMemberAreIgnored(t *testing.T) {
	w := newTestCluster(t)
	n1, stranger := w.node("n1", 1), w.node("n2", 2)
	n1.start()
	stranger.start()
	w.leader()
	stranger.acks.Merge([]ackguard.Ack{{ServerID: n1.serverID(), Term: 1000, Index: 1}})
	_, err := n1.ask(t.Context(), stranger.serverID(), stranger.clusterAddr)
	require.NoError(t, err)
	require.Less(t, n1.acks.Of(n1.serverID()).Term, uint64(1000))
}

// forger is a transport to all nodes that uses the id of one of them.
func (w *testCluster) forger(as *node) *raftwire.Transport {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	tr := raftwire.New(raftwire.Config{Layer: &layer{Listener: l, cluster: w, node: as}, Pool: 2, Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	w.t.Cleanup(func() { tr.Close() })
	return tr
}

// The test sends one message with the largest term under a member's id.
func TestAForgedTermDoesNotStopACluster(t *testing.T) {
	t.Parallel()
	w, _ := startTrio(t)
	leader := w.leader()
	before := leader.raft.CurrentTerm()
	forger := w.forger(leader)
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader.serverID()), Addr: []byte("localhost:1")}
	for _, n := range w.nodes {
		target := raft.ServerAddress(n.clusterAddr)
		_ = forger.AppendEntries(raft.ServerID(n.serverID()), target, &raft.AppendEntriesRequest{RPCHeader: header, Term: math.MaxUint64}, new(raft.AppendEntriesResponse))
		_ = forger.AppendEntries(raft.ServerID(n.serverID()), target, &raft.AppendEntriesRequest{RPCHeader: header, Term: math.MaxUint64, PrevLogEntry: 1, PrevLogTerm: 1}, new(raft.AppendEntriesResponse))
		_ = forger.RequestVote(raft.ServerID(n.serverID()), target, &raft.RequestVoteRequest{RPCHeader: header, Term: math.MaxUint64, LeadershipTransfer: true}, new(raft.RequestVoteResponse))
	}
	require.NoError(t, w.leader().propose("cluster x"))
	require.Less(t, w.leader().raft.CurrentTerm(), before+1000)
}
