package cluster

import (
	"context"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
)

// Drain prepares the node's stop: it makes the node report that it is not ready, ends
// waiting reserves, and transfers leadership. It blocks until that is done or ctx ends. The
// node stays a member of the cluster.
func (n *Node) Drain(ctx context.Context) {
	if n.draining.Swap(true) {
		return
	}
	n.shard.waits.Drain()
	if n.shard.raft.State() != raft.Leader || n.onlyVoter() {
		return
	}
	done := make(chan error, 1)
	go func() { done <- n.shard.transfer() }() // ends when Raft stops, at the latest
	select {
	case err := <-done:
		if err != nil {
			n.log.Warn("could not transfer leadership before stopping", "error", err)
		}
	case <-ctx.Done():
		n.log.Warn("could not transfer leadership before stopping", "error", ctx.Err())
	}
}

func (n *Node) onlyVoter() bool {
	return len(raftconfig.Voters(raftconfig.Latest(n.shard.raft))) <= 1
}
