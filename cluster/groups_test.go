package cluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/raftconfig"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/slot"
)

// newShardedCluster starts n nodes of a cluster with so many shards.
func newShardedCluster(t *testing.T, n, shards int) *testCluster {
	return newTunedCluster(t, n, func(_ int, cfg *Config) { cfg.Shards = shards })
}

// groupLeader waits for a leader of a group and returns its node.
func (c *testCluster) groupLeader(number int) *Node {
	c.t.Helper()
	at := -1
	c.eventually(func() bool {
		at = slices.IndexFunc(c.nodes, func(n *Node) bool {
			return n != nil && n.groups[number].shard.dispatcher() != nil && n.groups[number].shard.machine.ClusterID() != ""
		})
		return at >= 0
	}, fmt.Sprint("a leader of group ", number))
	return c.nodes[at]
}

// doIn runs ops in a data group through a node.
func doIn(t *testing.T, n *Node, number int, ops ...*jobpb.Op) {
	t.Helper()
	require.Eventually(t, func() bool {
		rs, err := n.groups[number].shard.Do(context.Background(), ops)
		if lostLeader(err) {
			return false
		}
		require.NoError(t, err)
		for _, r := range rs {
			require.NoError(t, job.ResultError(r))
		}
		return true
	}, patience, 10*time.Millisecond)
}

// idIn returns an id of a job of a group's shard.
func idIn(number, shards int, name string) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint(name, i); slot.Shard(id, uint32(shards)) == uint32(number-1) {
			return id
		}
	}
}

// hasJob returns whether a node's own state of a group has a job.
func hasJob(n *Node, number int, id string) bool {
	j, err := n.groups[number].shard.Job(context.Background(), id, true)
	return err == nil && j.GetId() == id
}

// awaitVoters waits until the configuration of each group has these voters and no other servers.
func (c *testCluster) awaitVoters(nodes ...string) {
	c.t.Helper()
	for number := range c.nodes[0].groups {
		c.eventually(func() bool {
			l := c.groupLeader(number)
			has := raftconfig.Latest(l.groups[number].shard.raft)
			var ids []string
			for _, id := range raftconfig.Voters(has) {
				ids = append(ids, raftconfig.NodeID(string(id)))
			}
			slices.Sort(ids)
			return len(has.Servers) == len(nodes) && slices.Equal(ids, nodes)
		}, fmt.Sprint("group ", number, " has the voters ", nodes))
	}
}

func TestEachGroupHasALeaderAndKnowsWhichItIs(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 3, 4)
	for number := range 5 {
		n := c.groupLeader(number)
		m := n.groups[number].shard.machine
		require.Equal(t, uint32(4), m.Shards())
		require.Equal(t, uint32(number), m.Group())
		require.Equal(t, c.groupLeader(0).clusterID(), m.ClusterID())
	}
	c.awaitVoters("n1", "n2", "n3")
}

func TestAnyNodeServesEachGroupAndItsJobsStay(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 3, 2)
	for number := 1; number <= 2; number++ {
		c.groupLeader(number)
		for i, n := range c.nodes {
			doIn(t, n, number, add(idIn(number, 2, fmt.Sprint("job-", i, "-")), "t", time.Hour))
		}
	}
	for i := range c.nodes {
		c.stop(i)
	}
	for i := range c.nodes { // without the flag
		c.cfgs[i].Shards = 0
		c.start(i)
	}
	for number := 1; number <= 2; number++ {
		c.groupLeader(number)
		for _, n := range c.nodes {
			require.Equal(t, 2, n.shards())
			c.eventually(func() bool { return hasJob(n, number, idIn(number, 2, "job-2-")) }, "the job is in the state of "+n.cfg.NodeID)
		}
	}
}

func TestTheQueueOfANodeReachesAllShards(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 3, 4)
	for number := range 5 {
		c.groupLeader(number)
	}
	q := c.nodes[1].Queue()
	var ops []*jobpb.Op
	for i := range 20 {
		ops = append(ops, add(fmt.Sprint("job-", i), "t", 0))
	}
	c.eventually(func() bool {
		rs, err := q.Do(t.Context(), ops)
		return err == nil && !slices.ContainsFunc(rs, func(r *jobpb.Result) bool { return job.ResultError(r) != nil })
	}, "all jobs are added")
	for i := range 20 {
		id := fmt.Sprint("job-", i)
		number := int(slot.Shard(id, 4)) + 1
		c.eventually(func() bool { return hasJob(c.nodes[0], number, id) }, "the job is in its shard")
	}
	got := map[string]bool{}
	c.eventually(func() bool {
		jobs, err := c.nodes[2].Queue().Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 20}, time.Second)
		require.True(t, err == nil || lostLeader(err), "%v", err)
		for _, j := range jobs {
			got[j.Id] = true
		}
		return len(got) == 20
	}, "all jobs are reserved")
}

func TestTheOtherNodesLeadAllGroupsOfALostNode(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 3, 2)
	lost := c.groupLeader(1)
	c.awaitVoters("n1", "n2", "n3")
	c.stop(slices.Index(c.nodes, lost))
	for number := range 3 {
		n := c.groupLeader(number)
		if number > 0 {
			doIn(t, n, number, add(idIn(number, 2, "after-"), "t", time.Hour))
		}
	}
}

func TestGroupsFollowTheMembers(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 3, func(_ int, cfg *Config) {
		cfg.Shards = 2
		cfg.membership.Stabilize, cfg.membership.Health = 500*time.Millisecond, 200*time.Millisecond
	})
	c.awaitVoters("n1", "n2", "n3")
	doIn(t, c.nodes[0], 1, add(idIn(1, 2, "before-"), "t", time.Hour))

	ports := freePorts(t, 2)
	cfg := c.cfgs[0]
	cfg.NodeID, cfg.DataDir, cfg.ClusterAddr, cfg.GossipAddr, cfg.HTTPAdvertise = "n4", t.TempDir(), ports[0], ports[1], "127.0.0.1:4"
	cfg.BootstrapExpect, cfg.Shards = 0, 2
	c.cfgs, c.nodes = append(c.cfgs, cfg), append(c.nodes, nil)
	c.start(3)
	c.awaitVoters("n1", "n2", "n3", "n4")
	c.eventually(func() bool { return hasJob(c.nodes[3], 1, idIn(1, 2, "before-")) }, "the new node has the job")
	c.eventually(func() bool { return c.nodes[3].Readiness().Ready }, "the new node is ready")

	// Once the call returns no group needs the node.
	c.eventually(func() bool { return c.nodes[0].RemoveMember(t.Context(), "n4") == nil }, "n4 is removed")
	for _, g := range c.nodes[0].groups {
		require.False(t, raftconfig.Contains(g.shard.committedConfiguration(), raft.ServerID(c.nodes[3].data.ServerID())), "group %d", g.number)
	}
	c.stop(3)
	c.awaitVoters("n1", "n2", "n3")
}

func TestANodeWithAnotherNumberOfShardsIsRefused(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 1, 2)
	c.groupLeader(2)

	ports := freePorts(t, 2)
	other := c.cfgs[0]
	other.NodeID, other.DataDir, other.ClusterAddr, other.GossipAddr = "n2", t.TempDir(), ports[0], ports[1]
	other.BootstrapExpect, other.Shards, other.Join = 0, 0, []string{c.cfgs[0].GossipAddr}
	n, err := Start(other)
	require.NoError(t, err)
	c.eventually(func() bool {
		h, err := c.nodes[0].Health(t.Context())
		return err == nil && slices.ContainsFunc(h.Reasons, func(why string) bool {
			return why == "n2 is alive but cannot be taken in: it cannot join: the number of shards (--shards) is 1 on n2 and 2 on n1"
		})
	}, "health names the reason")
	require.NoError(t, n.Stop())

	c.stop(0)
	c.cfgs[0].Shards = 4
	_, err = Start(c.cfgs[0])
	require.ErrorContains(t, err, "is of a cluster whose number of shards is 2, but --shards is 4")
	require.True(t, NeedsPerson(err))
}

// Its votes and its entries are lost: begun anew it could vote twice.
func TestANodeThatHasLostAGroupDoesNotStart(t *testing.T) {
	t.Parallel()
	c := newShardedCluster(t, 1, 2)
	c.groupLeader(2)
	dir := c.nodes[0].data.Shard(2)
	c.stop(0)
	require.NoError(t, os.RemoveAll(dir))
	_, err := Start(c.cfgs[0])
	require.ErrorContains(t, err, "has no log and no state")
	require.True(t, NeedsPerson(err))
	require.NoDirExists(t, dir)
}

func TestADirectoryWithoutANumberOfShardsHasOne(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.leader()
	c.stop(0)
	c.cfgs[0].Shards = 2
	_, err := Start(c.cfgs[0])
	require.ErrorContains(t, err, "is of a cluster whose number of shards is 1, but --shards is 2")
	c.cfgs[0].Shards = 1
	c.start(0)
	require.Same(t, c.nodes[0].shard, c.nodes[0].Queue(), "nothing is between")
	require.Len(t, c.nodes[0].groups, 1)
}
