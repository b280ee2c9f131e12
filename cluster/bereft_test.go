package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// deafFollowers gives the followers timeouts that no test waits for.
func (c *testCluster) deafFollowers(leader int) {
	for i, n := range c.nodes {
		if i == leader {
			continue
		}
		// Above the timeout that asks Raft to look, or it would not look.
		require.NoError(c.t, n.Shard.reloadRaft(func(r *raft.ReloadableConfig) {
			r.HeartbeatTimeout, r.ElectionTimeout = time.Hour, time.Hour
		}))
	}
}

func TestFollowersOfAnEndedLeaderDoNotWaitForTheHeartbeatTimeout(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	c.deafFollowers(l)
	c.stop(l)
	require.NotEqual(t, l, c.leader())
	do(t, c.follower(), add("a", "t", time.Hour))
}

func TestALookAtALeaderThatLivesChangesNothing(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	term := c.nodes[l].raft.CurrentTerm()
	c.deafFollowers(l)
	for i, n := range c.nodes {
		if i == l {
			continue
		}
		n.Shard.lookNow(raft.ServerID(c.nodes[l].Shard.cfg.ServerID))
		s := n.Shard.raft.ReloadableConfig()
		require.Equal(t, DefaultTiming().Heartbeat, s.HeartbeatTimeout, "the timeouts are restored")
		require.Equal(t, DefaultTiming().Election, s.ElectionTimeout)
	}
	require.Equal(t, l, c.leader())
	require.Equal(t, term, c.nodes[l].raft.CurrentTerm())
}

func TestFollowersLookOneAfterTheOther(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	id := raft.ServerID(c.nodes[l].Shard.cfg.ServerID)
	seen := map[time.Duration]bool{}
	for _, n := range c.nodes {
		c.eventually(func() bool {
			f := n.raft.GetConfiguration()
			return f.Error() == nil && len(f.Configuration().Servers) == 3
		}, "it knows the voters")
		at, votes := n.Shard.turnAfter(id)
		require.True(t, votes || n == c.nodes[l])
		require.False(t, seen[at], "two at %v", at)
		seen[at] = true
	}
	_, votes := c.nodes[l].Shard.turnAfter(id)
	require.False(t, votes, "the leader does not look after itself")
}

func TestALoneNodeDoesNotWaitForTheHeartbeatTimeout(t *testing.T) {
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.timing = DefaultTiming()
		cfg.timing.Heartbeat, cfg.timing.Election = time.Hour, time.Hour
	})
	do(t, c.nodes[c.leader()], add("a", "t", time.Hour))
	c.stop(0)
	do(t, c.start(0), add("b", "t", time.Hour))
}
