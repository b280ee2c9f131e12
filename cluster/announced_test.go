package cluster

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// silentReader is a state of which nothing comes until the test ends.
type silentReader <-chan struct{}

func (r silentReader) Read([]byte) (int, error) {
	<-r
	return 0, io.EOF
}

// Connections that announce a state to both followers in the leader's name, and then send nothing,
// or that are of an older term. Raft's main loop of a follower must not wait for any of them.
func TestAnnouncedStatesThatDoNotComeDoNotStopACluster(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	leader := c.nodes[l]
	mux, err := transport.Listen(transport.Options{
		Bind: "127.0.0.1:0", Advertise: "127.0.0.1:0", ServerID: leader.shard.cfg.ServerID, ClusterID: leader.clusterID,
	})
	require.NoError(t, err)
	other := raftwire.New(raftwire.Config{Layer: mux.Raft(0), Pool: 1, Timeout: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	over := make(chan struct{})
	var announcing sync.WaitGroup
	t.Cleanup(func() {
		close(over)
		require.NoError(t, other.Close())
		require.NoError(t, mux.Close())
		announcing.Wait()
	})
	term := leader.shard.raft.CurrentTerm()
	configuration := raft.EncodeConfiguration(leader.shard.raft.GetConfiguration().Configuration())
	for i, n := range c.nodes {
		for _, of := range []uint64{term, term - 1} {
			if i == l || of == 0 {
				continue
			}
			id, addr := raft.ServerID(n.shard.cfg.ServerID), raft.ServerAddress(c.cfgs[i].ClusterAddr)
			announcing.Go(func() {
				for {
					_ = other.InstallSnapshot(id, transport.Target(id, addr), &raft.InstallSnapshotRequest{
						RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader.shard.cfg.ServerID), Addr: []byte(c.cfgs[l].ClusterAddr)},
						Term:      of, SnapshotVersion: raft.SnapshotVersionMax, LastLogIndex: 1 << 30, LastLogTerm: of, Configuration: configuration, Size: 1 << 20,
					}, new(raft.InstallSnapshotResponse), silentReader(over))
					select {
					case <-over:
						return
					case <-time.After(10 * time.Millisecond): // and again
					}
				}
			})
		}
	}
	pace := time.NewTicker(100 * time.Millisecond) // so that adds come while all are announced
	defer pace.Stop()
	for i := range 30 {
		for _, n := range c.nodes {
			do(t, n, add(fmt.Sprint(n.cfg.NodeID, i), "t", 0))
		}
		<-pace.C
	}
}
