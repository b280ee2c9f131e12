package membership

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestRemovedNodeStaysOut(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	ctx := context.Background()
	leader := w.leader()
	gone := other(nodes, leader)
	asker := other(nodes[1:], gone) // any node accepts the call
	require.NoError(t, asker.Remove(ctx, gone.id))
	eventually(t, "the removed node knows", gone.Removed)
	require.NoError(t, leader.reconcile(ctx))
	require.False(t, leader.Configured(gone.serverID()), "a live but forgotten server was added again")

	// With its data it stays out; without data it is a new member.
	gone.stop()
	gone.start()
	eventually(t, "the removed node knows after a restart", gone.Removed)
	require.False(t, w.leader().Configured(gone.serverID()))
	gone.stop()
	gone.wipe()
	gone.start()
	w.voters("n1", "n2", "n3")
	require.False(t, gone.Removed())
}

func TestRemoveTheLeader(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	old := w.leader()
	require.NoError(t, old.Remove(context.Background(), old.id))
	next := w.leader()
	require.NotEqual(t, old, next)
	require.False(t, next.Configured(old.serverID()))
	require.Len(t, next.configuration().Servers, len(nodes)-1)
	eventually(t, "it knows", old.Removed)
}

func TestLeave(t *testing.T) {
	w, nodes := startTrio(t)
	ctx := context.Background()
	leader := w.leader()
	gone := other(nodes, leader)
	require.NoError(t, gone.Leave(ctx))
	require.True(t, gone.Removed())
	require.False(t, w.leader().Configured(gone.serverID()))
	require.NoError(t, gone.Leave(ctx), "leaving again succeeds")
	gone.stop()

	// Two remain. The leader may leave, the last one may not.
	leader = w.leader()
	require.NoError(t, leader.Leave(ctx))
	leader.stop()
	last := w.leader()
	err := last.Leave(ctx)
	require.Equal(t, job.CodeQuorumWouldFail, code(err), "%v", err)
	require.ErrorContains(t, err, "last voter")
	w.voters(last.id)
}

func TestRemovalThatWouldBreakTheQuorumIsRefused(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	ctx := context.Background()
	leader := w.leader()
	dead := other(nodes, leader)
	dead.kill()
	var live *node
	for _, n := range nodes {
		if n != leader && n != dead {
			live = n
		}
	}
	err := live.Remove(ctx, live.id)
	require.Equal(t, job.CodeQuorumWouldFail, code(err), "%v", err)
	require.EqualError(t, err, "removing "+live.id+" leaves 2 voters of which 1 is alive; 2 are needed")
	require.False(t, w.leader().fsm.forgotten(live.serverID()), "a refused removal changes nothing")

	err = live.Remove(ctx, "n9")
	require.Equal(t, job.CodeNotFound, code(err), "%v", err)
	require.EqualError(t, err, `"n9" is not a member; the members are n1, n2, n3`)

	require.NoError(t, live.Remove(ctx, dead.id), "a dead voter of three may be removed")
	require.Len(t, w.leader().configuration().Servers, 2)
}

func TestTransferLeadership(t *testing.T) {
	w, nodes := startTrio(t)
	ctx := context.Background()
	target := other(nodes, w.leader())
	// One transfer may fail, for example while the target does not know the leader yet.
	eventually(t, "a follower forwards the call", func() bool { return target.Transfer(ctx, target.id) == nil })
	eventually(t, "the target leads; leading already is success", func() bool {
		return target.Transfer(ctx, target.id) == nil && target.leads()
	})
	eventually(t, "another leads", func() bool { return target.Transfer(ctx, "") == nil && w.leader() != target })
	err := target.Transfer(ctx, "n9")
	require.Equal(t, job.CodeNotFound, code(err), "%v", err)
}

func TestWithoutALeaderANodeReturnsWhatItKnows(t *testing.T) {
	t.Parallel()
	_, nodes := startTrio(t)
	for _, n := range nodes[1:] {
		n.kill()
	}
	n := nodes[0]
	eventually(t, "it notices", func() bool { _, ok := n.Leader(); return !ok })
	ctx := context.Background()
	members, err := n.Members(ctx)
	require.NoError(t, err)
	require.Len(t, members, 3)
	h, err := n.Health(ctx)
	require.NoError(t, err)
	require.False(t, h.Healthy)
	require.Contains(t, h.Reasons, "no leader is known to n1")
	require.Equal(t, job.CodeNotApplied, code(n.Remove(ctx, "n2")))
}

// The server to remove is forgotten, but removing it would leave too few live voters. The
// health reports that, and joins still work: they may solve it.
func TestAHalfDoneRemovalDoesNotBlockJoins(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	leader := w.leader()
	gone := other(nodes, leader)
	var away *node
	for _, n := range nodes {
		if n != leader && n != gone {
			away = n
		}
	}
	away.stop()
	require.NoError(t, w.leader().propose("forget "+gone.serverID()))
	joiner := w.node("n4", 0, leader.gossipAddr(), gone.gossipAddr())
	joiner.start()
	eventually(t, "the joiner is taken in", func() bool { return w.leader().Configured(joiner.serverID()) })
	if w.leader().Configured(gone.serverID()) {
		eventually(t, "health names the cause, or it is over", func() bool {
			return w.leader().reports("the removal of "+gone.id) || !w.leader().Configured(gone.serverID())
		})
	}
}

func TestInterruptedRemovalIsCompleted(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	gone := other(nodes, w.leader())
	// A leader has forgotten the server and not removed it.
	require.NoError(t, w.leader().propose("forget "+gone.serverID()))
	eventually(t, "the removal is completed", func() bool { return !w.leader().Configured(gone.serverID()) })
}
