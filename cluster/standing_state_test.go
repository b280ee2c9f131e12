package cluster

import (
	"log/slog"
	"net"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// halfReader is a state of which the first bytes come, and nothing more until the test ends.
type halfReader struct {
	left  int
	begun func() // called once all has come that comes
	over  <-chan struct{}
}

func (r *halfReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		r.begun()
		<-r.over
		return 0, net.ErrClosed
	}
	n := min(len(b), r.left)
	r.left -= n
	return n, nil
}

// A leader is suspended while it sends its state, as by SIGSTOP: its connections stay open. The
// two others are a majority.
func TestAMajorityElectsALeaderWhileTheOldOnesStateStands(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	leader := c.nodes[l]
	do(t, leader, add("before", "t", 0))
	term := leader.shard.raft.CurrentTerm()
	serverID, clusterID := leader.shard.cfg.ServerID, leader.clusterID()
	configuration := raft.EncodeConfiguration(leader.shard.raft.GetConfiguration().Configuration())
	mux, err := transport.Listen(transport.Options{
		Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", ServerID: serverID, ClusterID: func() string { return clusterID },
	})
	require.NoError(t, err)
	other := raftwire.New(raftwire.Config{Layer: mux.Raft(0), Pool: 1, Timeout: transport.RaftTimeout, Logger: slog.New(slog.DiscardHandler)})
	over, ended := make(chan struct{}), make(chan error, 1)
	t.Cleanup(func() {
		close(over)
		require.NoError(t, other.Close())
		require.NoError(t, mux.Close())
		<-ended
	})
	to := (l + 1) % 3
	begun := make(chan struct{})
	go func() {
		id := raft.ServerID(c.nodes[to].shard.cfg.ServerID)
		ended <- other.InstallSnapshot(id, transport.Target(id, raft.ServerAddress(c.cfgs[to].ClusterAddr)), &raft.InstallSnapshotRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(serverID), Addr: []byte(c.cfgs[l].ClusterAddr)},
			Term:      term, SnapshotVersion: raft.SnapshotVersionMax, LastLogIndex: 1 << 30, LastLogTerm: term, Configuration: configuration, Size: 1 << 30,
		}, new(raft.InstallSnapshotResponse), &halfReader{left: 128 << 10, begun: func() { close(begun) }, over: over})
	}()
	<-begun
	c.stop(l)
	next := c.leader()
	require.NotEqual(t, l, next)
	do(t, c.nodes[to], add("after", "t", 0))

}
