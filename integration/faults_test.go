package integration

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/chaos/history"
)

// underLoad lets breaks do what it does to three nodes under load. What clients saw must
// be right then, and the nodes' states equal.
func underLoad(t *testing.T, breaks func(c *cluster, l *load)) *history.Report {
	c := startCluster(t, 3)
	l := startLoad(t, c.addrs())
	breaks(c, l)
	r := l.judge()
	t.Logf("operations %d, unknown outcomes %d, redeliveries %d, worst write gap %v", r.Ops, r.Unknowns(), r.Redeliveries, r.WorstWriteGap)
	c.requireEqualDigests(c.leader(), 3)
	return r
}

func TestNothingIsLostWhileLeadersAreKilled(t *testing.T) {
	t.Parallel()
	r := underLoad(t, func(c *cluster, l *load) {
		failovers := 0
		for end := time.Now().Add(faultTime(t)); time.Now().Before(end); failovers++ {
			l.wait(3*time.Second + rand.N(2*time.Second))
			victim := c.leader()
			c.kill(victim)
			l.writes() // without it
			c.start(victim)
		}
		t.Logf("failovers %d", failovers)
		require.NotZero(t, failovers)
	})
	require.NotZero(t, r.Redeliveries, "consumers that overrun their time to run must see redeliveries")
}

func TestNothingIsLostWhenAllNodesAreKilledAtOnce(t *testing.T) {
	t.Parallel()
	underLoad(t, func(c *cluster, l *load) {
		for range 2 {
			l.wait(3 * time.Second)
			nodes := c.Nodes()
			c.kill(nodes...)
			rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
			c.start(nodes...)
			l.writes()
		}
	})
}

func TestPausedLeaderKeepsItsPromises(t *testing.T) {
	t.Parallel()
	underLoad(t, func(c *cluster, l *load) {
		// Shorter than an election takes, about as long, and far longer.
		for _, pause := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 9 * time.Second} {
			l.wait(2 * time.Second)
			victim := c.leader()
			require.NoError(t, victim.Pause())
			l.wait(pause)
			if pause > 2*time.Second {
				l.writes() // while it stands still with all its connections open
			}
			require.NoError(t, victim.Resume())
			c.waitReady(victim)
		}
	})
}

func TestTerminatedLeaderHandsOver(t *testing.T) {
	t.Parallel()
	underLoad(t, func(c *cluster, l *load) {
		for range 2 {
			l.wait(2 * time.Second)
			old := c.leader()
			require.NoError(t, old.Terminate(t.Context()))
			heir := c.leader()
			require.NotEqual(t, old, heir)
			l.writes()
			c.until(func() error {
				members, err := c.Members(t.Context(), heir)
				if err == nil {
					require.Len(t, members, 3, "a node that stops stays a member")
				}
				return err
			})
			c.start(old)
		}
	})
}

func TestFourthNodeJoinsAndTheLeaderIsRemovedUnderLoad(t *testing.T) {
	t.Parallel()
	underLoad(t, func(c *cluster, l *load) {
		l.wait(2 * time.Second)
		fourth, err := c.Add("n4")
		require.NoError(t, err)
		c.start(fourth)
		c.waitVoters(fourth, "n1", "n2", "n3", "n4")

		old := c.leader()
		c.until(func() error {
			_, err := c.tryTarry("cluster", "remove", old.ID, "--yes")
			members, errMembers := c.Members(t.Context(), fourth)
			if errMembers == nil && !slices.ContainsFunc(members, func(m localcluster.Member) bool { return m.ID == old.ID }) {
				return nil // by an attempt whose outcome was unknown
			}
			return cmp.Or(err, errMembers)
		})
		var left []string
		for _, n := range c.Nodes() {
			if n != old {
				left = append(left, n.ID)
			}
		}
		c.waitVoters(fourth, left...)
		c.kill(old)
		l.writes()
		l.wait(2 * time.Second)
	})
}

func TestWipedNodeComesBackByItself(t *testing.T) {
	t.Parallel()
	underLoad(t, func(c *cluster, l *load) {
		l.wait(2 * time.Second)
		victim := c.follower()
		c.kill(victim)
		l.writes()
		require.NoError(t, victim.Wipe())
		c.start(victim)
		c.waitVoters(victim, "n1", "n2", "n3")
		l.wait(2 * time.Second)
	})
}

// A cluster whose nodes keep their logs in different ways is killed like any other.
func TestNothingIsLostWithRaftBoltdb(t *testing.T) {
	for name, kinds := range map[string][]string{
		"all nodes": {"raft-boltdb", "raft-boltdb", "raft-boltdb"},
		"one node":  {"raft-wal", "raft-boltdb", "raft-wal"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3)
			for i, n := range c.Nodes() {
				n.Setenv("TARRY_LOG_STORE", kinds[i])
			}
			c.start(c.Nodes()...)
			l := startLoad(t, c.addrs())
			l.wait(2 * time.Second)
			c.killLeader()
			l.wait(time.Second)
			c.kill(c.Nodes()...)
			for _, n := range c.Nodes() {
				n.Setenv("TARRY_LOG_STORE", "") // what was chosen stays
			}
			c.start(c.Nodes()...)
			l.judge()
			c.requireEqualDigests(c.leader(), 3)
			for i, n := range c.Nodes() {
				_, err := os.Stat(filepath.Join(n.DataDir(), "shard-0", "raft", "raft.db"))
				require.Equal(t, kinds[i] == "raft-boltdb", err == nil, n.ID)
			}
		})
	}
}
