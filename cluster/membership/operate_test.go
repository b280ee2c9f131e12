package membership

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/report"
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

	// It stays out with its data, and without it until it is admitted.
	gone.stop()
	gone.start()
	eventually(t, "the removed node knows after a restart", gone.Removed)
	require.False(t, w.leader().Configured(gone.serverID()))
	eventually(t, "the health names it", func() bool {
		return w.leader().reports(gone.id + " was removed from the cluster at 1970-01-01T00:00:00Z, and still runs with its old data")
	})
	gone.stop()
	eventually(t, "it is gone", func() bool { return !w.leader().reports(gone.id + " was removed") })
	gone.wipe()
	gone.start()
	eventually(t, "the node knows what is in its way", func() bool { return strings.Contains(gone.Refusal(), `run "tarry cluster admit `+gone.id) })
	eventually(t, "so does the health", func() bool {
		return w.leader().reports(gone.id + " is alive but cannot be taken in: node " + gone.id + " was removed from the cluster at ")
	})
	require.False(t, w.leader().Configured(gone.serverID()))
	eventually(t, "any node lists it", func() bool {
		list, err := asker.RemovedNodes(ctx)
		return err == nil && len(list) == 1 && list[0].Id == gone.id && list[0].AtMs == 1
	})

	w.admit(gone.id)
	w.voters("n1", "n2", "n3")
	require.False(t, gone.Removed())
	require.Empty(t, gone.Refusal())
	eventually(t, "it is no removed node any more", func() bool { return code(asker.Admit(ctx, gone.id)) == job.CodeNotFound })
	eventually(t, "no node is listed", func() bool {
		list, err := asker.RemovedNodes(ctx)
		return err == nil && len(list) == 0
	})
}

// admit admits a removed node. An attempt may fail, for example while leadership changes.
func (w *testCluster) admit(id string) {
	eventually(w.t, id+" is admitted", func() bool {
		l := w.leader()
		return l.Admit(context.Background(), id) == nil || l.removedAt(id) == 0
	})
}

// The node comes back without its data before its removal is complete.
func TestANodeThatIsBeingRemovedDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	ctx := context.Background()
	leader := w.leader()
	gone := other(nodes, leader)
	old := gone.serverID()
	end, err := leader.beginChange(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.forget(ctx, old, gone.id)) // and then the leader failed
	gone.stop()
	gone.wipe()
	gone.start()
	eventually(t, "the leader hears of the new server", func() bool {
		_, ok := leader.PeerByServerID(gone.serverID())
		return ok
	})
	end()
	eventually(t, "the node knows what is in its way", func() bool { return gone.Refusal() != "" })
	eventually(t, "the removal is completed", func() bool { return !w.leader().Configured(old) })
	require.False(t, w.leader().Configured(gone.serverID()))
}

// An operator may have removed one of the two servers that a node has for a moment.
func TestANodeThatStaysInTheClusterIsNotRemovedWithItsEarlierServer(t *testing.T) {
	c := raft.Configuration{Servers: []raft.Server{{ID: "n1.a"}, {ID: "n1.b"}, {ID: "n2.a"}}}
	require.Empty(t, nodeOf(c, c.Servers[0]))
	require.Equal(t, "n2", nodeOf(c, c.Servers[2]))
}

// A node that was away knows that another was removed, and not that it has joined again and
// leads now. Only that one can send it what it lacks.
func TestANodeThatWasAwayFollowsALeaderThatWasRemovedBefore(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	ctx := context.Background()
	back := w.node("n4", 0, nodes[0].gossipAddr(), nodes[1].gossipAddr())
	back.start()
	w.voters("n1", "n2", "n3", "n4")
	eventually(t, "it is removed", func() bool { return nodes[0].Remove(ctx, "n4") == nil || !w.leader().Configured(back.serverID()) })
	away := other(nodes, w.leader())
	eventually(t, "the node that will be away knows it", func() bool { return away.removedAt("n4") != 0 && !away.Configured(back.serverID()) })
	away.stop()
	back.stop()
	back.wipe()
	w.admit("n4")
	back.start()
	eventually(t, "it votes again", func() bool {
		members, err := w.leader().Members(ctx)
		return err == nil && slices.ContainsFunc(members, func(m *report.Member) bool { return m.Id == "n4" && m.Voter && m.Alive })
	})
	eventually(t, "it leads", func() bool { return w.leader().Transfer(ctx, "n4") == nil && back.leads() })
	away.knows = map[string]int64{"n4": 1}
	away.start()
	eventually(t, "the node that was away has caught up", func() bool { return away.Configured(back.serverID()) && away.removedAt("n4") == 0 })
	w.voters("n1", "n2", "n3", "n4")
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
	require.False(t, w.leader().fsm.Forgotten(live.serverID()), "a refused removal changes nothing")

	err = live.Remove(ctx, "n9")
	require.Equal(t, job.CodeNotFound, code(err), "%v", err)
	require.EqualError(t, err, `"n9" is not a member; the members are n1, n2, n3`)

	require.NoError(t, live.Remove(ctx, dead.id), "a dead voter of three may be removed")
	require.Len(t, w.leader().configuration().Servers, 2)

	eventually(t, "a follower knows that two are few, and that all works", func() bool {
		h, err := live.Health(ctx)
		return err == nil && h.Healthy && h.Severity() == report.Warning && len(h.Problems) == 1 && h.Problems[0].Kind == string(report.TwoVoters)
	})
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
	eventually(t, "it says what to do", func() bool {
		h, err := n.Health(ctx)
		return err == nil && strings.Contains(strings.Join(h.Reasons, "\n"), "of 3 voters 1 are alive, fewer than a majority")
	})
	require.Equal(t, job.CodeNotApplied, code(n.Remove(ctx, "n2")))
}

// Gossip takes seconds to see that a process was killed.
func TestAMemberThatDoesNotReplyIsNotAlive(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	leader := w.leader()
	gone := other(nodes, leader)
	gone.kill()
	members, err := leader.Members(context.Background())
	require.NoError(t, err)
	require.Len(t, members, 3)
	for _, m := range members {
		if m.Id == gone.id {
			require.False(t, m.Alive)
		}
	}
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
