package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// loggedOps calls f with each operation in a node's log, and its entry's time in Unix ms.
func loggedOps(t *testing.T, n *Node, f func(nowMS int64, op *jobpb.Op)) {
	first, err := n.shard.stores.Log.FirstIndex()
	require.NoError(t, err)
	for i := first; i <= n.shard.raft.AppliedIndex(); i++ {
		var e raft.Log
		require.NoError(t, n.shard.stores.Log.GetLog(i, &e))
		if e.Type != raft.LogCommand {
			continue
		}
		var ops oplog.OpReader
		nowMS, err := ops.ReadEntry(e.Data)
		require.NoError(t, err)
		for op, err := ops.Next(); op != nil; op, err = ops.Next() {
			require.NoError(t, err)
			f(nowMS, op)
		}
	}
}

// aheads counts the advances in a node's log that were proposed ahead.
func aheads(t *testing.T, n *Node) (count int) {
	loggedOps(t, n, func(_ int64, op *jobpb.Op) {
		if op.GetAdvanceAt() != nil {
			count++
		}
	})
	return count
}

func TestWhatFallsDueWhileAConsumerWaitsIsCommittedAhead(t *testing.T) {
	for name, leads := range map[string]bool{"on the leader": true, "on a follower": false} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, 3)
			c.eventually(func() bool {
				leader := c.nodes[c.leader()]
				node := leader
				if !leads {
					node = c.follower()
				}
				do(t, leader, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", DelayMs: 100, TtrMs: 60_000}}})
				jobs, err := node.shard.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, time.Minute)
				now := time.Now()
				require.NoError(t, err)
				require.Len(t, jobs, 1)
				require.False(t, now.Before(time.UnixMilli(jobs[0].DueMs)), "it comes early")
				do(t, leader, finish(jobs[0]))
				return aheads(t, leader) > 0
			}, "an advance ahead")
		})
	}
}

// A leader that is elected settles what the one before has committed ahead, which may have
// shown its effect already.
func TestANewLeaderSettlesWhatWasCommittedAhead(t *testing.T) {
	c := newTestCluster(t, 3)
	leader := c.nodes[c.leader()]
	at := leader.shard.Now().UnixMilli() + 90
	do(t, leader, &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: &jobpb.AdvanceAt{AtMs: at, Advance: &jobpb.Advance{Max: 1}}}})
	c.transfer(c.follower())
	now := c.nodes[c.leader()]
	require.Zero(t, now.shard.machine.LastEffect())
	require.GreaterOrEqual(t, now.shard.machine.Applied().ClockMS, at)
	require.GreaterOrEqual(t, now.shard.Now().UnixMilli(), at)
}

// The entry of a proposal whose waiters were told that it failed may be committed later, in a
// term of the same leader.
func TestJobsThatAnUnknownAdvanceReservesAreGivenBack(t *testing.T) {
	c := newTestCluster(t, 1)
	leader := c.nodes[c.leader()]
	do(t, leader, add("a", "t", 0))
	reserve := &jobpb.Reserve{Topics: []string{"t"}, Max: 1, TtrMs: time.Hour.Milliseconds()}
	ahead := &jobpb.AdvanceAt{AtMs: leader.shard.Now().UnixMilli() + 20, Number: 1, Advance: &jobpb.Advance{Max: 1}, Reserves: []*jobpb.Reserve{reserve}}
	do(t, leader, &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: ahead}})
	c.eventually(func() bool {
		if leader.shard.machine.LastEffect() != 0 {
			return false
		}
		j, err := leader.shard.Job(t.Context(), "a", false)
		require.NoError(t, err)
		return j.State == jobpb.State_STATE_READY
	}, "the job is ready again")
}
