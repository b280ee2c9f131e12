package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryNodeKnowsWhereClientsReachTheLeader(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	want := c.nodes[l].cfg.HTTPAdvertise
	require.NotEmpty(t, want)
	for _, n := range c.nodes {
		c.eventually(func() bool { return n.LeaderAddress() == want }, "every node knows the address of the leader")
	}
}
