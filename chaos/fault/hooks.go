package fault

import (
	"context"
	"strconv"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Environment variables of a server that was built with -tags chaos; see the server's
// package internal/hook.
const (
	killVariable  = "TARRY_HOOK_KILL"
	clockVariable = "TARRY_HOOK_CLOCK"
)

// Hooks returns the faults inside a server: it is killed between two steps of a write, or
// its clock is wrong.
func Hooks() []Fault {
	faults := append([]Fault{
		{Name: "kill-at-point-leader", Weight: 4, Overlaps: true, Run: onOne((*Env).Leader, killAtPoint)},
		{Name: "kill-at-point-follower", Weight: 2, Overlaps: true, Run: onOne((*Env).Follower, killAtPoint)},
	}, clocks()...)
	for i := range faults {
		faults[i].Needs |= HookBinary
	}
	return faults
}

// point is a place in the server at which it can be killed.
type point struct {
	name   string
	passes int           // it is killed within so many passes
	within time.Duration // the approximate time of these under load
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

// killAtPoint restarts a node so that it is killed at a point, waits for that, and restarts
// it again. It counts points that the node does not reach in time: most nodes do not send
// or receive a state.
func killAtPoint(ctx context.Context, e *Env, n *localcluster.Node) error {
	p := points[e.Rand.IntN(len(points))]
	at := p.name + ":" + strconv.Itoa(1+e.Rand.IntN(p.passes))
	if err := n.Kill(); err != nil {
		return err
	}
	n.Setenv(killVariable, at)
	err := n.Start()
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
	sleep.For(ctx, e.downtime())
	return e.Return(ctx, n)
}
