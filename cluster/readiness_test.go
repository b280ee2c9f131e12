package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftconfig"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// idGate is a log that takes the entry with the cluster's id only when the gate is opened.
type idGate struct {
	raft.LogStore
	open <-chan struct{}
}

func (l idGate) IsMonotonic() bool { return l.LogStore.(raft.MonotonicLogStore).IsMonotonic() }

func (l idGate) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

func (l idGate) StoreLogs(es []*raft.Log) error {
	if slices.ContainsFunc(es, namesCluster) {
		<-l.open
	}
	return l.LogStore.StoreLogs(es)
}

func namesCluster(e *raft.Log) bool {
	if e.Type != raft.LogCommand {
		return false
	}
	entry, err := oplog.DecodeEntry(e.Data)
	return err == nil && slices.ContainsFunc(entry.Ops, func(op *jobpb.Op) bool {
		_, names := op.Kind.(*jobpb.Op_SetCluster)
		return names
	})
}

// Who sees that a node is ready may make a backup of it or join it, and both need the id.
func TestANodeIsReadyWhenItsClusterHasAnID(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.wrapLog = func(l raft.LogStore) raft.LogStore { return idGate{l, open} }
	})
	n := c.nodes[0]
	c.eventually(func() bool { return n.Readiness().Leader == "n1" }, "it leads")
	r := n.Readiness()
	require.False(t, r.Ready)
	require.Equal(t, []string{"the cluster has no id yet: its first leader gives it one, and this node has not heard of it"}, r.Reasons)
	close(open)
	c.eventually(func() bool { return n.Readiness().Ready }, "it is ready")
	require.NotEmpty(t, n.clusterID())
}

// Who replaces disks one after the other goes on when a node is ready: until it votes, the loss of
// the next disk would be the loss of the majority.
func TestAJoinerIsReadyWhenItVotes(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.leader()
	c.eventually(func() bool { return c.nodes[0].Readiness().Ready }, "a node that is a voter from the start is ready")
	ports := freePorts(t, 4)
	for i, never := range []bool{false, true} {
		cfg := c.cfgs[0]
		cfg.NodeID, cfg.DataDir, cfg.BootstrapExpect, cfg.NonVoter = fmt.Sprint("n", i+2), t.TempDir(), 0, never
		cfg.ClusterAddr, cfg.GossipAddr, cfg.Join = ports[2*i], ports[2*i+1], []string{c.cfgs[0].GossipAddr}
		c.cfgs, c.nodes = append(c.cfgs, cfg), append(c.nodes, nil)
		n := c.start(i + 1)
		joined := func() bool { return n.Readiness().Leader != "" && n.clusterID() != "" }
		c.eventually(joined, "it has joined")
		if never {
			c.eventually(func() bool { return n.Readiness().Ready }, "it is ready, and will never vote")
			continue
		}
		seen := false // that it was not ready, and why
		c.eventually(func() bool {
			r := n.Readiness()
			seen = seen || slices.Contains(r.Reasons, "the node does not vote yet: it must have the leader's state and stay caught up for a while first; until then do not stop another voter")
			return r.Ready
		}, "it is ready")
		require.True(t, seen)
		require.Contains(t, raftconfig.Voters(raftconfig.Latest(n.shard.raft)), raft.ServerID(n.data.ServerID()))
	}
}
