package cluster

import (
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
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
	entry, err := job.DecodeEntry(e.Data)
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
