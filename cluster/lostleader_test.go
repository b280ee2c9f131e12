package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// longTimeouts gives the followers timeouts that no test waits for.
func (c *testCluster) longTimeouts(leader int) {
	for i, n := range c.nodes {
		if i == leader {
			continue
		}
		// It must exceed the timeout that makes Raft check.
		require.NoError(c.t, n.shard.reloadRaft(func(r *raft.ReloadableConfig) {
			r.HeartbeatTimeout, r.ElectionTimeout = time.Hour, time.Hour
		}))
	}
}

func TestFollowersOfAnEndedLeaderDoNotWaitForTheHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	c.longTimeouts(l)
	c.stop(l)
	require.NotEqual(t, l, c.leader())
	do(t, c.follower(), add("a", "t", time.Hour))
}

func TestALoneNodeDoesNotWaitForTheHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.timing = DefaultTiming()
		cfg.timing.Heartbeat, cfg.timing.Election = time.Hour, time.Hour
	})
	do(t, c.nodes[c.leader()], add("a", "t", time.Hour))
	c.stop(0)
	do(t, c.start(0), add("b", "t", time.Hour))
}

func TestALostConnectionDoesNotDeposeALeaderThatListens(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	l := c.leader()
	c.longTimeouts(l)
	term := c.nodes[l].shard.raft.CurrentTerm()
	for _, n := range c.nodes {
		n.trans.CloseConnections()
	}
	c.eventually(func() bool {
		_, err := c.nodes[l].shard.Do(t.Context(), nil)
		return err == nil
	}, "the leader goes on")
	require.Equal(t, l, c.leader())
	require.Equal(t, term, c.nodes[l].shard.raft.CurrentTerm())
}
