package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// maxClockOffset is the server's --max-clock-offset. The queue follows a clock that is off
// by less. A clock that is off by more has no effect on it.
const maxClockOffset = 5 * time.Second

// clocks returns the faults of a wrong clock.
//
// A leader whose clock drifts ahead moves the queue's clock by up to maxClockOffset, and
// that takes minutes to disappear. This is documented behaviour, so such a drift is only
// drawn by name.
func clocks() []Fault {
	return []Fault{
		{Name: "clock-back-leader", Weight: 1, Run: clock((*Env).Leader, back)},
		{Name: "clock-back-follower", Weight: 1, Run: clock((*Env).Follower, back)},
		{Name: "clock-slow-leader", Weight: 1, Run: clock((*Env).Leader, slow)},
		{Name: "clock-forward-follower", Weight: 1, Run: clock((*Env).Follower, forward)},
		{Name: "clock-fast-leader", Run: clock((*Env).Leader, fast)},
		{Name: "clock-far-ahead-leader", Weight: 1, Run: farAhead((*Env).Leader, short)},
		{Name: "clock-far-ahead-leader-long", Weight: 1, Run: farAhead((*Env).Leader, long)},
		{Name: "clock-far-ahead-follower-long", Weight: 1, Run: farAhead((*Env).Follower, long)},
		{Name: "clock-alternates", Weight: 1, Run: onAll(alternating(1))},
		{Name: "clocks-alternate", Weight: 1, Run: onAll(alternating(2))},
		{Name: "clock-far-ahead-candidate", Weight: 1, Run: farAheadCandidate},
	}
}

func short(e *Env) time.Duration { return e.Hold() }

func long(e *Env) time.Duration { return e.Between(15*time.Second, 30*time.Second) }

// farAhead sets one node's clock ahead by more than maxClockOffset. If the node leads it
// must transfer leadership. The queue's clock must not change, then or later: the judge
// allows no tolerance.
func farAhead(choose choice, hold func(*Env) time.Duration) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		n, leads, err := e.clocked(ctx, choose)
		if err != nil {
			return err
		}
		far := []time.Duration{10 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour}[e.Rand.IntN(5)]
		e.Log.Info("clock far ahead", "node", n.ID, "by", far, "leads", leads)
		if err := setClock(clockFile(n), far); err != nil {
			return err
		}
		end := time.Now().Add(hold(e))
		if leads {
			patience, cancel := Healing(ctx)
			if !until(patience, healing, func() bool { return e.othersLead(patience, n) }) {
				e.Violate("clock", "node %s leads though its clock is %v ahead", n.ID, far)
			}
			cancel()
		}
		// Raft may elect it again until it has transferred leadership again.
		for seen := 0; time.Now().Before(end) && ctx.Err() == nil; sleep.For(ctx, time.Second) {
			leader, err := e.currentLeader(ctx)
			if err != nil || leader != n {
				seen = 0
			} else if seen++; seen == 3 {
				e.Violate("clock", "node %s leads again though its clock is %v ahead", n.ID, far)
			}
		}
		err = setClock(clockFile(n), 0)
		e.judgeClock(ctx, "its leader's clock was "+far.String()+" ahead")
		return errors.Join(err, e.Return(ctx, n))
	}
}

// farAheadCandidate sets a follower's clock ahead and kills the leader. Of three nodes no
// majority of clocks agrees then, so the node may lead. The queue must not use its clock.
func farAheadCandidate(ctx context.Context, e *Env) error {
	n, _, err := e.clocked(ctx, (*Env).Follower)
	if err != nil {
		return err
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	e.Log.Info("clock far ahead, and the leader dies", "node", n.ID, "leader", leader.ID)
	if err := setClock(clockFile(n), time.Hour); err != nil {
		return err
	}
	sleep.For(ctx, e.Between(100*time.Millisecond, 3*time.Second))
	err = leader.Kill()
	sleep.For(ctx, e.Hold())
	err = errors.Join(err, setClock(clockFile(n), 0))
	if err != nil {
		return err
	}
	err = e.Return(ctx, leader, n)
	e.judgeClock(ctx, "a follower's clock was an hour ahead")
	return err
}

// turnEvery is how long an alternating clock is wrong in one way.
const turnEvery = time.Second

// alternating makes clocks jump, by more than maxClockOffset, ahead and back every second: that of
// the leader, or of the leader and another node in turn, so that never more than one is wrong. The
// queue's clock must not follow.
func alternating(count int) func(context.Context, *Env, []*localcluster.Node) error {
	return func(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
		if len(nodes) < 3 {
			return ErrNoVictim
		}
		for _, n := range nodes {
			if err := e.ensureClock(ctx, n); err != nil {
				return err
			}
		}
		leader, err := e.currentLeader(ctx)
		if err != nil {
			return err
		}
		victims := append([]*localcluster.Node{leader}, e.others(leader)...)[:count]
		far := []time.Duration{10 * time.Second, time.Minute, time.Hour}[e.Rand.IntN(3)]
		e.Log.Info("clocks alternate", "nodes", Names(victims), "by", far)
		e.Skew(maxClockOffset)
		end := time.Now().Add(max(e.Hold(), 4*turnEvery))
		for turn := 0; time.Now().Before(end) && ctx.Err() == nil; turn++ {
			off := far
			if turn/count%2 == 1 {
				off = -far
			}
			n := victims[turn%count]
			if err := setClock(clockFile(n), off); err != nil {
				return err
			}
			sleep.For(ctx, turnEvery)
			if err := setClock(clockFile(n), 0); err != nil {
				return err
			}
		}
		e.judgeClock(ctx, "clocks had jumped by "+far.String())
		return e.Return(ctx, nodes...)
	}
}

// others returns the nodes except one.
func (e *Env) others(one *localcluster.Node) []*localcluster.Node {
	return slices.DeleteFunc(e.Cluster.Nodes(), func(n *localcluster.Node) bool { return n == one })
}

// ensureClock restarts a node unless its clock can be set already.
func (e *Env) ensureClock(ctx context.Context, n *localcluster.Node) error {
	if _, err := os.Stat(clockFile(n)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return e.giveClock(ctx, n, clockFile(n))
}

// clocked claims a node, makes its clock settable, and reports whether it leads. A node
// whose clock was never set must be restarted for that, and then it does not lead any more.
func (e *Env) clocked(ctx context.Context, choose choice) (n *localcluster.Node, leads bool, err error) {
	if n, err = choose(e, ctx); err != nil {
		return nil, false, err
	}
	before, err := e.currentLeader(ctx)
	if err != nil {
		return nil, false, err
	}
	if err := e.ensureClock(ctx, n); err != nil {
		return nil, false, err
	}
	if before != n {
		return n, false, nil
	}
	patience, cancel := Healing(ctx)
	defer cancel()
	leads = until(patience, healing, func() bool {
		leader, err := e.currentLeader(patience)
		if err != nil {
			return false
		}
		return leader == n || e.Cluster.Post(patience, leader, "/v1/cluster/transfer-leadership", map[string]string{"id": n.ID}, nil) == nil
	})
	return n, leads, nil
}

// clockAhead returns how far the queue's clock is ahead of the nodes'.
func (e *Env) clockAhead(ctx context.Context) (time.Duration, error) {
	leader, err := e.currentLeader(ctx)
	if err != nil {
		return 0, err
	}
	var v struct {
		Ahead float64 `json:"cluster_ahead"`
	}
	err = e.Cluster.Get(ctx, leader, "/v1/cluster/clock", &v)
	return time.Duration(v.Ahead * float64(time.Second)), err
}

// judgeClock requires that a wrong clock has no lasting effect. It tolerates the error of
// the measurement.
func (e *Env) judgeClock(ctx context.Context, after string) {
	patience, cancel := Healing(ctx)
	defer cancel()
	var ahead time.Duration
	until(patience, healing, func() bool {
		var err error
		ahead, err = e.clockAhead(patience)
		return err == nil
	})
	if ahead > time.Second {
		e.Violate("clock", "the queue's clock is %v ahead after %s", ahead, after)
	}
}

// course returns how far a clock is off, some time after the fault began. far is the
// offset that was drawn.
type course func(far, since time.Duration) time.Duration

func back(far, _ time.Duration) time.Duration    { return -far }
func forward(far, _ time.Duration) time.Duration { return far }
func slow(_, since time.Duration) time.Duration  { return -since / 2 }
func fast(_, since time.Duration) time.Duration  { return since / 2 }

// clockEvery is the interval at which a drifting clock is set.
const clockEvery = 50 * time.Millisecond

// clock makes one node's clock wrong, by one second to one hour or drifting, and right
// again. A node whose clock was never set is restarted for that.
func clock(choose choice, off course) func(context.Context, *Env) error {
	return onOne(choose, func(ctx context.Context, e *Env, n *localcluster.Node) error {
		file := clockFile(n)
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			if err := e.giveClock(ctx, n, file); err != nil {
				return err
			}
		}
		far := []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}[e.Rand.IntN(4)]
		hold := e.Hold()
		e.Skew(min(max(off(far, 0).Abs(), off(far, hold).Abs()), maxClockOffset))
		e.Log.Info("clock off", "node", n.ID, "at_first", off(far, 0), "at_last", off(far, hold))
		for began := time.Now(); time.Since(began) < hold && ctx.Err() == nil; sleep.For(ctx, clockEvery) {
			if err := setClock(file, off(far, time.Since(began))); err != nil {
				return errors.Join(err, setClock(file, 0))
			}
		}
		return errors.Join(setClock(file, 0), e.Return(ctx, n))
	})
}

func clockFile(n *localcluster.Node) string { return filepath.Join(filepath.Dir(n.LogPath()), "clock") }

// giveClock restarts a node with a clock that can be set.
func (e *Env) giveClock(ctx context.Context, n *localcluster.Node, file string) error {
	if err := setClock(file, 0); err != nil {
		return err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	n.Setenv(clockVariable, path)
	if err := n.Kill(); err != nil {
		return err
	}
	return e.Return(ctx, n)
}

// setClock replaces the file atomically, so that the node never reads half a number.
func setClock(file string, off time.Duration) error {
	tmp := file + ".tmp"
	err := os.WriteFile(tmp, []byte(strconv.FormatInt(off.Milliseconds(), 10)+"\n"), 0o644)
	if err == nil {
		err = os.Rename(tmp, file)
	}
	if err != nil {
		return fmt.Errorf("set a node's clock: %w", err)
	}
	return nil
}
