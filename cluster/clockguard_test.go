package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// skewedCluster is a cluster whose nodes' clocks can be set.
type skewedCluster struct {
	*testCluster
	by  []atomic.Int64 // nanoseconds
	all atomic.Int64   // added to all nodes' clocks
}

func newSkewedCluster(t *testing.T, n int) *skewedCluster {
	s := &skewedCluster{by: make([]atomic.Int64, n)}
	s.testCluster = newTunedCluster(t, n, func(i int, cfg *Config) {
		cfg.wall = func() time.Time { return time.Now().Add(time.Duration(s.by[i].Load() + s.all.Load())) }
		cfg.membership.Health = 100 * time.Millisecond
	})
	return s
}

func (s *skewedCluster) set(i int, by time.Duration) { s.by[i].Store(int64(by)) }

// write adds a job through a node and requires that the queue's time has stayed
// within a minute of the time at an offset.
func (s *skewedCluster) write(n *Node, id string, offset time.Duration) {
	s.t.Helper()
	do(s.t, n, add(id, "t", 0))
	clock := time.UnixMilli(s.nodes[s.leader()].shard.machine.Applied().ClockMS)
	require.WithinDuration(s.t, time.Now().Add(offset), clock, time.Minute)
}

func TestALeaderWhoseClockJumpsTransfersLeadership(t *testing.T) {
	t.Parallel()
	s := newSkewedCluster(t, 3)
	bad := s.leader()
	s.write(s.nodes[bad], "before", 0)
	for _, by := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		bad = s.leader()
		s.set(bad, by)
		s.write(s.nodes[bad], "just after "+by.String(), 0)
		s.eventually(func() bool {
			l, _ := s.nodes[bad].shard.leaders.Get()
			return l.ID != "" && l.ID != s.nodes[bad].cfg.NodeID && s.leader() != bad
		}, "a node whose clock is right leads")
		s.write(s.nodes[bad], "later "+by.String(), 0)
		s.eventually(func() bool {
			h, err := s.nodes[bad].Health(context.Background())
			return err == nil && strings.Contains(strings.Join(h.Reasons, "; "), "the clock of "+s.nodes[bad].cfg.NodeID+" is ")
		}, "health names it")
		s.set(bad, 0)
	}
}

func TestANodeWhoseClockIsOffDoesNotLead(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead of": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSkewedCluster(t, 3)
			l := s.leader()
			s.write(s.nodes[l], "before", 0)
			bad := (l + 1) % 3
			s.set(bad, by)
			s.eventually(func() bool {
				err := s.nodes[l].TransferLeadership(t.Context(), s.nodes[bad].cfg.NodeID)
				return job.CodeOf(err) == job.CodeConflict
			}, "the operator gets the reason")
			s.eventually(func() bool {
				return strings.Contains(strings.Join(s.nodes[bad].Readiness().Warnings, ""), name+" the majority's")
			}, "the node says so of itself")

			// Raft alone does not check clocks.
			s.eventually(func() bool {
				at := s.nodes[s.leader()].shard.raft
				return at.LeadershipTransferToServer(raft.ServerID(s.nodes[bad].shard.cfg.ServerID), raft.ServerAddress(s.nodes[bad].shard.localAddr)).Error() == nil
			}, "Raft hands over to it")
			// It may lead for a moment: until it knows two other clocks none is known to be wrong.
			another := func() bool { at := s.established(); return at >= 0 && at != bad }
			s.eventually(another, "it gives leadership away")
			s.write(s.nodes[bad], "after", 0)
			s.eventually(another, "it does not lead again")
		})
	}
}

// slowClockHost takes as long to confirm its clock as a voter that does not reply is waited for.
type slowClockHost struct{ Host }

func (h slowClockHost) ConfirmClock(ctx context.Context) error {
	<-time.After(time.Second)
	return h.Host.ConfirmClock(ctx)
}

// A leader whose clock is off settles what was committed ahead too, by the majority's time:
// it proposes nothing while it does not know that.
func TestALeaderWhoseClockIsOffSettlesByTheMajoritysTime(t *testing.T) {
	t.Parallel()
	s := newSkewedCluster(t, 3)
	l := s.leader()
	next := (l + 1) % 3
	leader, bad := s.nodes[l].shard, s.nodes[next].shard
	s.stop((l + 2) % 3)
	s.set(next, time.Hour)

	bad.cfg.Host = slowClockHost{bad.cfg.Host}
	leader.stamps.mu.Lock()
	leader.stamps.unsure = true // so the effect is left to the next leader
	leader.stamps.mu.Unlock()
	do(t, s.nodes[l], &jobpb.Op{Kind: &jobpb.Op_AdvanceAt{AdvanceAt: &jobpb.AdvanceAt{AtMs: leader.Now().UnixMilli() + 90, Advance: &jobpb.Advance{Max: 1}}}})
	s.eventually(func() bool { return bad.machine.LastEffect() != 0 }, "the next leader will have something to settle")
	s.eventually(func() bool {
		return leader.raft.LeadershipTransferToServer(raft.ServerID(bad.cfg.ServerID), raft.ServerAddress(bad.localAddr)).Error() == nil
	}, "Raft hands over")
	s.eventually(func() bool { return bad.machine.LastEffect() == 0 && s.established() >= 0 }, "it is settled")
	require.WithinDuration(t, time.Now(), time.UnixMilli(bad.machine.Applied().ClockMS), time.Minute)
	require.WithinDuration(t, time.Now(), s.nodes[s.leader()].shard.Now(), time.Minute)
}

// If no majority agrees, no clock is known to be wrong: the queue continues with the earlier
// of two clocks.
func TestTwoNodesWhoseClocksDisagree(t *testing.T) {
	t.Parallel()
	s := newSkewedCluster(t, 2)
	l := s.leader()
	s.write(s.nodes[l], "before", 0)
	s.set(l, time.Hour)
	s.write(s.nodes[l], "fast leader", 0)
	s.eventually(func() bool {
		h, err := s.nodes[l].Health(context.Background())
		return err == nil && len(h.Reasons) > 0
	}, "health says so")
	s.write(s.nodes[l], "still", 0)
	for _, n := range s.nodes {
		require.Zero(t, n.members.TransferAttempts(), "no node gives leadership away")
	}
	s.transfer(s.nodes[1-l])
	s.write(s.nodes[l], "slow leader", 0)
}

// A cluster that was idle, or stopped, for a month goes by the time of all clocks at
// once; so does a single node whose clock is set right.
func TestATimeThatAllClocksTellIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	for _, n := range []int{1, 3} {
		s := newSkewedCluster(t, n)
		s.write(s.nodes[0], "before", 0)
		s.all.Store(int64(month))
		s.eventually(func() bool { return time.Until(s.nodes[s.leader()].shard.Now()) > month-time.Minute }, "the leader follows")
		s.write(s.nodes[0], "a month later", month)
		for i := range n {
			s.stop(i)
		}
		s.all.Store(int64(2 * month))
		for i := range n {
			s.start(i)
		}
		s.leader()
		s.write(s.nodes[0], "two months later", 2*month)
	}
}

func TestOperatorsSeeTheClocks(t *testing.T) {
	t.Parallel()
	s := newSkewedCluster(t, 3)
	l := s.leader()
	slow := (l + 1) % 3
	s.set(slow, -time.Hour)
	clocks, err := s.nodes[(l+2)%3].Clocks(context.Background())
	require.NoError(t, err)
	require.True(t, clocks.Agreed)
	require.Equal(t, (5 * time.Second).Microseconds(), clocks.MaxOffsetUs)
	require.InDelta(t, 0, clocks.ClusterAheadUs, 5e6)
	require.Len(t, clocks.Nodes, 3)
	for i, c := range clocks.Nodes {
		require.True(t, c.Known, c.Id)
		require.Equal(t, i == slow, c.Off, "%+v", c)
	}
	require.InDelta(t, -3600, float64(clocks.Nodes[slow].OffsetUs)/1e6, 5)
}

// A node that once led with a clock one hour fast, was set right, and leads again
// must not be an hour ahead again.
func TestClockOfALeadershipEndsWithIt(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	first := c.leader()
	led := c.nodes[first]
	now := time.Now()
	led.shard.clock.now(now, sinceEpoch(now)+time.Hour, 0, 0) // told, and never put into an entry

	other := c.nodes[(first+1)%3]
	c.transfer(other)
	c.eventually(func() bool { return led.shard.dispatcher() == nil }, "the first leads no longer")
	c.transfer(led)
	require.WithinDuration(t, time.Now(), led.shard.Now(), time.Minute)
}

// The metric is the offset of clocks and not how long the queue has been idle.
func TestClockSkewIsNotIdleness(t *testing.T) {
	s := newSkewedCluster(t, 3)
	do(t, s.nodes[0], add("a", "t", 0))
	s.all.Store(int64(time.Minute)) // as if it had passed without an entry
	s.eventually(func() bool { return s.nodes[s.leader()].shard.clockSkew().Abs() < time.Second }, "the leader's clock follows")
	require.Zero(t, s.nodes[(s.leader()+1)%3].shard.clockSkew())

	var other int
	s.eventually(func() bool { // a busy machine may elect another leader in between
		other = (s.leader() + 1) % 3
		s.set(other, -time.Hour)
		// The last entry was a minute ago, or is of a new leader.
		if skew := s.nodes[other].shard.clockSkew(); (skew - 3570*time.Second).Abs() <= time.Minute {
			return true
		}
		s.set(other, 0)
		return false
	}, "the queue's clock is ahead of a follower's that is behind")
	s.eventually(func() bool {
		by := s.nodes[s.leader()].members.ClockGuard().Offsets()[s.nodes[other].cfg.NodeID]
		return (by + time.Hour).Abs() < time.Minute
	}, "the leader shows it")
}

// A cluster whose clock ran away is brought back under load: no entry that was under
// way takes its clock along again.
func TestAClockThatRanAwayIsSetBack(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	s := newSkewedCluster(t, 3)
	n := s.nodes[0]
	do(t, n, add("before", "t", 2*time.Hour))
	refused := n.ResetClock(context.Background())
	require.Equal(t, job.CodeConflict, job.CodeOf(refused), "%v", refused)

	s.all.Store(int64(day))
	s.eventually(func() bool { return time.Until(s.nodes[s.leader()].shard.Now()) > day-time.Minute }, "the queue's clock runs away")
	do(t, n, add("meanwhile", "t", time.Hour), add("held", "u", 0))
	require.Len(t, reserveOne(t, n, patience, "u"), 1)
	due := reserveOne(t, n, patience, "t")
	require.Len(t, due, 1, "it came early")
	require.Equal(t, "before", due[0].Id)

	s.all.Store(0)
	s.eventually(func() bool {
		h, err := n.Health(context.Background())
		return err == nil && strings.Contains(strings.Join(h.Reasons, ""), "tarry cluster clock reset")
	}, "health names the way out")

	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for i, n := range s.nodes {
		load.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				if _, err := n.shard.Do(ctx, []*jobpb.Op{add(fmt.Sprint("load-", i, "-", k), "load", time.Hour)}); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	s.eventually(func() bool { return n.ResetClock(context.Background()) == nil }, "the clock is set back")
	s.write(n, "after", 0)
	cancel()
	load.Wait()
	s.write(n, "later", 0)

	until := func(id string) time.Time {
		j, err := n.shard.Job(context.Background(), id, false)
		require.NoError(t, err)
		return time.UnixMilli(max(j.DueMs, j.ReservedUntilMs))
	}
	s.eventually(func() bool { return time.Until(until("held")) <= time.Minute+time.Second }, "reservations end in time")
	s.eventually(func() bool { return time.Until(until("meanwhile")) <= time.Hour+time.Second }, "delays of meanwhile end in time")
	clocks, err := n.Clocks(context.Background())
	require.NoError(t, err)
	require.InDelta(t, 0, clocks.ClusterAheadUs, 1e6)
}
