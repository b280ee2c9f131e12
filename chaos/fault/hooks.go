package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tarry/bench/localcluster"
)

// What a server that was built with -tags chaos reads from its environment; the
// server's package internal/hook says more.
const (
	killVariable  = "TARRY_HOOK_KILL"
	clockVariable = "TARRY_HOOK_CLOCK"
)

// Hooks are the faults from inside a server: it dies between two steps of a write,
// or its clock is wrong.
//
// A leader with a fast clock makes jobs due too early, by as much; that is known
// and not promised otherwise. So the default mix has a fast clock only on
// followers and with nothing beside it. Forward jumps of the leader are drawn by
// name only.
func Hooks() []Fault {
	faults := []Fault{
		{Name: "kill-at-point-leader", Weight: 4, Overlaps: true, Run: killAtPoint((*Env).Leader)},
		{Name: "kill-at-point-follower", Weight: 2, Overlaps: true, Run: killAtPoint((*Env).Follower)},
		{Name: "clock-back-leader", Weight: 1, Run: clock((*Env).Leader, back)},
		{Name: "clock-back-follower", Weight: 1, Run: clock((*Env).Follower, back)},
		{Name: "clock-slow-leader", Weight: 1, Run: clock((*Env).Leader, slow)},
		{Name: "clock-forward-follower", Weight: 1, Run: clock((*Env).Follower, forward)},
		{Name: "clock-forward-leader", Run: clock((*Env).Leader, forward)},
		{Name: "clock-fast-leader", Run: clock((*Env).Leader, fast)},
	}
	for i := range faults {
		faults[i].Needs |= HookBinary
	}
	return faults
}

// point is a place in the server at which it can be killed.
type point struct {
	name   string
	passes int           // it dies within so many passes
	within time.Duration // about how long these take under load
}

// points are the steps of a write. A snapshot, which flushes the state and
// truncates the log, is taken about twice a minute.
var points = []point{
	{"before-log-store", 500, 10 * time.Second}, {"after-log-store", 500, 10 * time.Second},
	{"before-apply", 500, 10 * time.Second}, {"after-apply", 500, 10 * time.Second},
	{"before-log-store", 3, 10 * time.Second}, {"after-log-store", 3, 10 * time.Second}, // while it catches up
	{"before-flush", 1, 40 * time.Second}, {"after-flush", 1, 40 * time.Second},
	{"before-log-delete", 1, 40 * time.Second}, {"after-log-delete", 1, 40 * time.Second},
	{"before-checkpoint", 1, 15 * time.Second}, {"after-checkpoint", 1, 15 * time.Second},
	{"before-swap", 1, 15 * time.Second}, {"after-swap", 1, 15 * time.Second},
}

// killAtPoint starts a node anew so that it dies at a point, waits for that, and
// starts it again. A point that the node does not come to in time, as most do not
// come to send or receive a state, is counted.
func killAtPoint(choose choice) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		n, err := choose(e, ctx)
		if err != nil {
			return err
		}
		p := points[e.Rand.IntN(len(points))]
		at := p.name + ":" + strconv.Itoa(1+e.Rand.IntN(p.passes))
		if err := n.Kill(); err != nil {
			return err
		}
		n.Setenv(killVariable, at)
		err = n.Start()
		n.Setenv(killVariable, "") // of the next starts
		if err != nil {
			return err
		}
		waited, cancel := context.WithTimeout(ctx, p.within)
		_, notYet := n.Wait(waited)
		cancel()
		e.Log.Info("killed at a point", "node", n.ID, "point", at, "reached", notYet == nil)
		figure := "killed at a point"
		if notYet != nil {
			figure = "points not reached"
			if err := n.Kill(); err != nil {
				return err
			}
		}
		if e.Count != nil {
			e.Count(figure, 1)
		}
		Wait(ctx, e.downtime())
		return e.Return(ctx, n)
	}
}

// course says how far a clock is off, some time after the fault began. far is the
// distance that was drawn.
type course func(far, since time.Duration) time.Duration

func back(far, _ time.Duration) time.Duration    { return -far }
func forward(far, _ time.Duration) time.Duration { return far }
func slow(_, since time.Duration) time.Duration  { return -since / 2 }
func fast(_, since time.Duration) time.Duration  { return since / 2 }

// clockEvery is how often a drifting clock is set.
const clockEvery = 50 * time.Millisecond

// clock sets one node's clock off, by one second to one hour or drifting, and
// right again. A node whose clock was never touched is started anew for it.
func clock(choose choice, off course) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		n, err := choose(e, ctx)
		if err != nil {
			return err
		}
		file := clockFile(n)
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			if err := e.giveClock(ctx, n, file); err != nil {
				return err
			}
		}
		far := []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}[e.Rand.IntN(4)]
		hold := e.Hold()
		e.Skew(max(off(far, 0).Abs(), off(far, hold).Abs()))
		e.Log.Info("clock off", "node", n.ID, "at_first", off(far, 0), "at_last", off(far, hold))
		for began := time.Now(); time.Since(began) < hold && ctx.Err() == nil; Wait(ctx, clockEvery) {
			if err := setClock(file, off(far, time.Since(began))); err != nil {
				return errors.Join(err, setClock(file, 0))
			}
		}
		return errors.Join(setClock(file, 0), e.Return(ctx, n))
	}
}

func clockFile(n *localcluster.Node) string { return filepath.Join(filepath.Dir(n.LogPath()), "clock") }

// giveClock starts a node anew with a clock that can be set.
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

// setClock replaces the file in one step, so that nobody reads half a number.
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
