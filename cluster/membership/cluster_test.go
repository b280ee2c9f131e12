package membership

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossip"
	"tarry/job"
)

func TestThreeNodesMakeOneClusterInEveryStartOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := newTestCluster(t)
			nodes := w.trio()
			for _, i := range order {
				nodes[i].start()
			}
			w.voters("n1", "n2", "n3")
			w.oneClusterID(nodes...)
		})
	}
}

// trio returns three nodes that expect each other. Each joins all.
func (w *testCluster) trio() []*node {
	nodes := []*node{w.node("n1", 3), w.node("n2", 3), w.node("n3", 3)}
	for _, n := range nodes {
		for _, o := range nodes {
			n.join = append(n.join, o.gossipAddr())
		}
	}
	return nodes
}

// startTrio starts three nodes and waits until they vote.
func startTrio(t *testing.T) (*testCluster, []*node) {
	w := newTestCluster(t)
	return w, w.startTrio()
}

func (w *testCluster) startTrio() []*node {
	nodes := w.trio()
	for _, n := range nodes {
		n.start()
	}
	w.voters("n1", "n2", "n3")
	return nodes
}

// votesAtItsAddress reports whether the leader's configuration has n as a voter, at its
// present address.
func (w *testCluster) votesAtItsAddress(n *node) bool {
	return slices.Contains(w.leader().configuration().Servers, raft.Server{ID: raft.ServerID(n.serverID()), Address: raft.ServerAddress(n.clusterAddr), Suffrage: raft.Voter})
}

// reports reports whether n's health gives a reason with this text.
func (n *node) reports(text string) bool {
	h, err := n.Health(context.Background())
	return err == nil && strings.Contains(strings.Join(h.Reasons, "; "), text)
}

// oneClusterID waits until all nodes know the same cluster id.
func (w *testCluster) oneClusterID(nodes ...*node) string {
	w.t.Helper()
	id := ""
	eventually(w.t, "every node knows the cluster's id", func() bool {
		id = nodes[0].fsm.ClusterID()
		for _, n := range nodes {
			if n.fsm.ClusterID() != id || id == "" {
				return false
			}
		}
		return true
	})
	return id
}

func TestANodeInNoClusterSeeksOthersUntilTheyAreUp(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	w.rejoin = time.Hour
	later := w.node("n2", 2)
	first := w.node("n1", 2, later.gossipBind)
	first.start()
	later.start()
	w.voters("n1", "n2")
}

func TestFourNodesThatExpectThreeMakeOneCluster(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	nodes := []*node{w.node("n1", 3), w.node("n2", 3), w.node("n3", 3), w.node("n4", 3)}
	for _, n := range nodes {
		n.join = []string{nodes[1].gossipAddr(), nodes[3].gossipAddr()}
		n.start()
	}
	w.voters("n1", "n2", "n3", "n4")
	w.oneClusterID(nodes...)
}

func TestSingleNodeStartsAlone(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n := w.node("n1", 1)
	n.start()
	w.voters("n1")
	h, err := n.Health(context.Background())
	require.NoError(t, err)
	require.Zero(t, h.FailureTolerance)
}

func TestJoinerComesInAsNonVoterAndIsPromoted(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1 := w.node("n1", 1)
	n1.start()
	w.voters("n1")
	n2 := w.node("n2", 0, n1.gossipAddr())
	n3 := w.node("n3", 0, n1.gossipAddr())
	n2.start()
	n3.start()
	w.voters("n1", "n2", "n3")
	w.oneClusterID(n1, n2, n3)
	eventually(t, "healthy", func() bool {
		h, err := n2.Health(context.Background()) // a follower asks the leader
		return err == nil && h.Healthy && h.FailureTolerance == 1
	})
}

func TestRestartKeepsTheMember(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	id := w.oneClusterID(nodes...)
	for _, n := range nodes {
		n.stop()
	}
	for _, n := range nodes {
		n.start()
	}
	w.voters("n1", "n2", "n3")
	require.Equal(t, id, w.oneClusterID(nodes...))
}

func TestALeaveMessageRemovesNoMember(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	follower := other(nodes, w.leader())
	follower.stop() // sends a leave message to gossip
	eventually(t, "the leader sees it dead and keeps it", func() bool {
		members, err := w.leader().Members(context.Background())
		if err != nil || len(members) != 3 {
			return false
		}
		for _, m := range members {
			if m.Id == follower.id {
				return !m.Alive && m.Voter
			}
		}
		return false
	})
	eventually(t, "health names it", func() bool { return w.leader().reports(follower.id + " is not alive: gossip has no sign of it") })
	follower.start()
	w.voters("n1", "n2", "n3")
}

func other(nodes []*node, not *node) *node {
	for _, n := range nodes {
		if n != not {
			return n
		}
	}
	return nil
}

func TestWipedNodeRejoinsAsANewMember(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*node){"after a farewell": (*node).stop, "after a crash": (*node).kill} {
		t.Run(name, func(t *testing.T) {
			w, nodes := startTrio(t)
			id := w.oneClusterID(nodes...)
			wiped := other(nodes, w.leader())
			old := wiped.serverID()
			end(wiped)
			wiped.wipe()
			wiped.start()
			eventually(t, "the new server votes and the old one is gone", func() bool {
				l := w.leader()
				return l.Configured(wiped.serverID()) && !l.Configured(old) && l.fsm.Forgotten(old)
			})
			w.voters("n1", "n2", "n3")
			require.Equal(t, id, w.oneClusterID(nodes...))
		})
	}
}

// A second machine was given the id of a member, which is down for a moment.
func TestASecondMachineDoesNotTakeThePlaceOfAMemberThatRestarts(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	member := other(nodes, w.leader())
	second := w.node(member.id, 0, w.leader().gossipAddr())
	second.incarnation = 2
	second.start()
	eventually(t, "the conflict is named", func() bool { return w.leader().reports("is still alive at " + member.clusterAddr) })
	member.stop()
	eventually(t, "why it still waits is named", func() bool {
		return w.leader().reports("the member "+member.id+" (server "+member.serverID()+" at "+member.clusterAddr+") is down") &&
			w.leader().reports("stop it, move its data directory away and start it with another --node-id")
	})
	require.True(t, w.leader().Configured(member.serverID()))
	member.start()
	w.voters("n1", "n2", "n3")
	require.True(t, w.leader().Configured(member.serverID()))
	require.False(t, w.leader().Configured(second.serverID()))
}

func TestAWipedNodeWithANewAddressHasItsPlaceAfterAWhile(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	w.replace = 2 * time.Second
	nodes := w.startTrio()
	wiped := other(nodes, w.leader())
	old := wiped.serverID()
	wiped.stop()
	wiped.wipe()
	wiped.clusterAddr = fmt.Sprintf("localhost:%d", freePort(t))
	wiped.start()
	eventually(t, "the new server votes and the old one is gone", func() bool {
		l := w.leader()
		return l.Configured(wiped.serverID()) && !l.Configured(old)
	})
	w.voters("n1", "n2", "n3")
}

// On busy machines gossip may report the earlier run as alive for most of a minute.
func TestWipedNodeRejoinsWhileGossipReportsItsEarlierRunAsAlive(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	w.noProbes = true
	nodes := w.startTrio()
	wiped := other(nodes, w.leader())
	old := wiped.serverID()
	wiped.kill()
	wiped.wipe()
	wiped.start()
	eventually(t, "the new server votes and the old one is gone", func() bool {
		l := w.leader()
		return l.Configured(wiped.serverID()) && !l.Configured(old)
	})
	w.voters("n1", "n2", "n3")
	for _, n := range nodes {
		require.Empty(t, n.log.with(duplicateID), "its earlier run is not another node")
	}
}

func TestFreshNodeAcceptsNoRaftTrafficBeforeItIsInvited(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	leader := w.leader()
	wiped := other(nodes, leader)
	wiped.kill()
	// No leader can add the node: the other two are kept from changing the configuration.
	var release []func()
	for _, n := range nodes {
		if n != wiped {
			end, err := n.beginChange(context.Background())
			require.NoError(t, err)
			release = append(release, end)
		}
	}
	wiped.wipe()
	wiped.start()
	eventually(t, "the leader hears of the new server", func() bool {
		_, ok := leader.PeerByServerID(wiped.serverID())
		return ok && wiped.ClusterID() != ""
	})
	eventually(t, "messages for the earlier server arrive and are refused", func() bool { return wiped.layer.arrived.Load() > 2 })
	require.False(t, wiped.AcceptsRaft())
	require.Zero(t, wiped.raft.LastIndex(), "entries for the earlier server reached the new one")
	for _, end := range release {
		end()
	}
	eventually(t, "it is a member", func() bool { return w.leader().Configured(wiped.serverID()) })
	w.voters("n1", "n2", "n3")
	require.True(t, wiped.AcceptsRaft())
}

func TestClustersThatShareASeedNeverMerge(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	a, b := w.node("a1", 1), w.node("b1", 1)
	a.start()
	b.start()
	ids := map[*node]string{a: w.oneClusterID(a), b: w.oneClusterID(b)}
	require.NotEqual(t, ids[a], ids[b])
	// Both clusters and a newcomer name both.
	a.seeds.add([]string{b.gossipAddr()})
	b.seeds.add([]string{a.gossipAddr()})
	c := w.node("c1", 0, a.gossipAddr(), b.gossipAddr())
	c.start()
	eventually(t, "the newcomer is in one of them", func() bool {
		return a.Configured(c.serverID()) || b.Configured(c.serverID())
	})
	// The refusal is recorded where it happened, so the clusters have met.
	eventually(t, "they met", func() bool { return a.foreign.Load() != nil && b.foreign.Load() != nil })
	require.False(t, a.Configured(b.serverID()) || b.Configured(a.serverID()))
	require.False(t, a.Configured(c.serverID()) && b.Configured(c.serverID()))
	require.Equal(t, ids[a], a.fsm.ClusterID())
	require.Equal(t, ids[b], b.fsm.ClusterID())

	err := a.Join(context.Background(), []string{b.gossipAddr()})
	require.Equal(t, job.CodeConflict, code(err), "%v", err)
	require.ErrorContains(t, err, ids[a])
	require.ErrorContains(t, err, ids[b])
	eventually(t, "who looks at the node sees it", func() bool {
		alone := a // whom the newcomer did not join
		if a.Configured(c.serverID()) {
			alone = b
		}
		why := alone.Foreign(time.Now()).GetText()
		return strings.Contains(why, ids[a]) && strings.Contains(why, ids[b]) && alone.Foreign(time.Now().Add(2*foreignFor)) == nil
	})
}

func TestDifferentExpectationsStartNoCluster(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2, n3 := w.node("n1", 2), w.node("n2", 3), w.node("n3", 2)
	n2.join, n3.join = []string{n1.gossipAddr()}, []string{n1.gossipAddr()}
	n2.start()
	n1.start()
	eventually(t, "they discover each other", func() bool { return len(n1.others()) == 1 && len(n2.others()) == 1 })
	n3.start()
	eventually(t, "all discover all", func() bool { return len(n1.others()) == 2 && len(n2.others()) == 2 && len(n3.others()) == 2 })
	for _, n := range w.nodes {
		why, err := n.tryBootstrap(context.Background())
		require.NoError(t, err)
		require.Contains(t, why, "bootstrap-expect")
		require.False(t, n.hasState())
	}
	// The operator corrects the one that is wrong.
	n2.stop()
	n2.expect = 2
	n2.start()
	w.voters("n1", "n2", "n3")
}

func TestRunTimeJoin(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2 := w.node("n1", 1), w.node("n2", 0)
	n1.start()
	n2.start()
	w.oneClusterID(n1)
	ctx := context.Background()
	require.Equal(t, job.CodeInvalid, code(n2.Join(ctx, nil)))
	require.Equal(t, job.CodeInvalid, code(n2.Join(ctx, []string{"nowhere"})))
	require.Equal(t, job.CodeNotApplied, code(n2.Join(ctx, []string{fmt.Sprintf("127.0.0.1:%d", freePort(t))})))
	require.NoError(t, n2.Join(ctx, []string{n1.gossipAddr()}))
	w.voters("n1", "n2")
	require.NoError(t, n2.Join(ctx, []string{n1.gossipAddr()}), "joining its own cluster changes nothing")
}

// A forged gossip record gives a voter another address. The leader asks the voter, and
// nothing changes.
func TestAForgedAddressInGossipChangesNothing(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	w.oneClusterID(nodes...)
	leader := w.leader()
	victim := other(nodes, leader)
	meta := victim.meta()
	meta.ClusterAddr = fmt.Sprintf("localhost:%d", freePort(t))
	meta.Epoch++ // newer than the voter's own record
	forger, err := gossip.Open(context.Background(), gossip.Options{
		Bind: "127.0.0.1:0", AdvertiseHost: "localhost", Meta: func() gossip.Meta { return meta },
		Admit: func(gossip.Meta) error { return nil }, Changed: func() {}, Overruled: func() {}, Logger: testLogger(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { forger.Close() })
	_, err = forger.Join(context.Background(), []string{leader.gossipAddr()})
	require.NoError(t, err)
	eventually(t, "the leader has received it, and reports why it ignores it", func() bool {
		return w.leader().reports("gossip says that it moved from "+victim.clusterAddr) && w.leader().reports("a copy of its data directory")
	})
	require.True(t, w.votesAtItsAddress(victim))
	require.NoError(t, w.leader().propose("cluster x"), "a majority answers")
}

// The reply to a join does not reveal whether a port without a node is open.
func TestAJoinCannotScanPorts(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n := w.node("n1", 1)
	n.start()
	w.voters("n1")
	open, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer open.Close()
	answers := map[string]bool{}
	for _, addr := range []string{open.Addr().String(), fmt.Sprintf("127.0.0.1:%d", freePort(t)), "169.254.169.254:7302", "0.0.0.0:7302"} {
		var err error
		eventually(t, "the cluster has an id", func() bool { // before that no join is tried
			err = n.Join(context.Background(), []string{addr})
			return n.fsm.ClusterID() != ""
		})
		require.Equal(t, job.CodeNotApplied, code(err))
		answers[err.Error()] = true
	}
	require.Len(t, answers, 1, "the same reply to all")
	require.Equal(t, job.CodeInvalid, code(n.Join(context.Background(), []string{"127.0.0.1:22"})))
}

func TestMemberWithANewAddressKeepsItsVote(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	moved := other(nodes, w.leader())
	moved.stop()
	moved.clusterAddr = fmt.Sprintf("localhost:%d", freePort(t))
	moved.gossipBind = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	moved.start()
	eventually(t, "the configuration has the new address", func() bool { return w.votesAtItsAddress(moved) })
	w.voters("n1", "n2", "n3")
}

// Raft refuses a configuration with one address twice, so an exchange of addresses takes
// more than one change per member.
func TestMembersThatExchangeAddressesKeepTheirVotes(t *testing.T) {
	t.Parallel()
	for name, moves := range map[string]func(leader *node, others []*node) []*node{
		"two followers":             func(_ *node, others []*node) []*node { return others },
		"the leader and a follower": func(leader *node, others []*node) []*node { return []*node{leader, others[0]} },
		"all in a ring":             func(leader *node, others []*node) []*node { return append(others, leader) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, nodes := startTrio(t)
			leader := w.leader()
			moved := moves(leader, slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n == leader }))
			for _, n := range moved {
				n.stop()
			}
			first := moved[0].clusterAddr
			for i, n := range moved {
				n.clusterAddr = first
				if i+1 < len(moved) {
					n.clusterAddr = moved[i+1].clusterAddr
				}
			}
			for _, n := range moved {
				n.start()
			}
			for _, n := range nodes {
				eventually(t, "the configuration has the new addresses", func() bool { return w.votesAtItsAddress(n) })
			}
			eventually(t, "healthy", func() bool {
				h, err := w.leader().Health(context.Background())
				return err == nil && h.Healthy
			})
		})
	}
}

// The dead member keeps its place in the configuration, and its vote.
func TestAMemberMayTakeTheAddressOfADeadOne(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	dead := other(nodes, w.leader())
	dead.stop()
	joiner := w.node("n4", 0, w.leader().gossipAddr())
	joiner.clusterAddr = dead.clusterAddr
	joiner.start()
	eventually(t, "it votes, and so does the dead one", func() bool {
		voters := 0
		for _, s := range w.leader().configuration().Servers {
			if s.Suffrage == raft.Voter {
				voters++
			}
		}
		return voters == 4
	})
	dead.clusterAddr = fmt.Sprintf("localhost:%d", freePort(t))
	dead.start()
	w.voters("n1", "n2", "n3", "n4")
}

func TestMembersFindEachOtherAgainAfterGossipRemovedThem(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	// A new pool has no other members, like each side after a long partition.
	for _, n := range nodes {
		n.poolMu.Lock()
		n.pool.Load().Crash()
		n.pool.Store(nil)
		n.poolMu.Unlock()
		require.NoError(t, n.openPool(context.Background()))
	}
	w.voters("n1", "n2", "n3")
}

func TestTwoMachinesWithOneNodeIDDoNotReplaceEachOther(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2 := w.node("n1", 1), w.node("n2", 0)
	n2.join = []string{n1.gossipAddr()}
	n1.start()
	n2.start()
	w.voters("n1", "n2")
	twin := w.node("n2", 0, n1.gossipAddr())
	twin.incarnation = 2
	twin.start()
	eventually(t, "health names the twin", func() bool { return n1.reports("another node with the id n2 is still alive") })
	eventually(t, "the twin's own health does, too", func() bool {
		return twin.reports("another node with the id n2 is at " + n2.clusterAddr)
	})
	for n, duplicates := range map[*node]int{n1: 0, n2: 1, twin: 1} {
		eventually(t, n.serverID()+" tells of its duplicates", func() bool {
			return len(n.log.with(duplicateID)) == duplicates
		})
	}
	require.True(t, n1.Configured(n2.serverID()))
	require.False(t, n1.Configured(twin.serverID()))
}

func TestANodeThatFoundAClusterNeverStartsOne(t *testing.T) {
	w := newTestCluster(t)
	// A single node with state and no leader: the rest of its cluster is not reachable.
	lost := w.node("n0", 3)
	lost.disk.SetUint64([]byte("CurrentTerm"), 7)
	lost.seenState = true
	lost.start()
	a, b := w.node("n1", 2, lost.gossipAddr()), w.node("n2", 2, lost.gossipAddr())
	a.start()
	eventually(t, "it met the node with state", a.joining.Load)
	lost.stop()
	b.join = []string{a.gossipAddr()}
	b.start()
	eventually(t, "the two discover only each other", func() bool { return len(a.others()) == 1 && len(b.others()) == 1 })
	for range 3 {
		why, err := a.tryBootstrap(context.Background())
		require.NoError(t, err)
		require.NotEmpty(t, why)
	}
	require.False(t, a.hasState() || b.hasState())
}
