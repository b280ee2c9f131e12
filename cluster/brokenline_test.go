package cluster

import (
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestAFollowerThatStandsForElectionLeads(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	c.deafFollowers(l)
	next := (l + 1) % 3
	// It is refused as long as it misses an entry.
	require.Eventually(t, func() bool {
		n := c.nodes[next]
		if n.dispatcher() == nil && n.raft.State() != raft.Leader {
			require.NoError(t, n.standForElection(n.trans))
		}
		return n.dispatcher() != nil
	}, 30*time.Second, 300*time.Millisecond, "it leads")
	do(t, c.nodes[l], add("a", "t", 0))
}

func TestOnlyARefusalEndsALeader(t *testing.T) {
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	require.False(t, n.ended(silent.Addr().String()))
	require.NoError(t, silent.Close())
	require.True(t, n.ended(silent.Addr().String()))
}

func TestABrokenLineDoesNotDeposeALeaderThatListens(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	c.deafFollowers(l)
	term := c.nodes[l].raft.CurrentTerm()
	for _, n := range c.nodes {
		n.trans.CloseStreams() // every line breaks
	}
	c.eventually(func() bool {
		_, err := c.nodes[l].Do(t.Context(), nil)
		return err == nil
	}, "the leader goes on")
	require.Equal(t, l, c.leader())
	require.Equal(t, term, c.nodes[l].raft.CurrentTerm())
}
