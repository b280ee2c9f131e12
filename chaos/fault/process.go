package fault

import (
	"context"
	"errors"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Process returns the faults of processes: they are killed, paused, or terminated.
func Process() []Fault {
	return []Fault{
		{Name: "kill-leader", Weight: 20, Overlaps: true, Run: onOne((*Env).Leader, killOne)},
		{Name: "kill-leaders", Weight: 10, Run: onAll(killLeaders)},
		{Name: "kill-follower", Weight: 2, Overlaps: true, Run: onOne((*Env).Follower, killOne)},
		{Name: "kill-majority", Weight: 1, Run: onAll(killMajority)},
		{Name: "kill-all", Weight: 1, Run: onAll(killAll)},
		{Name: "pause-leader", Weight: 6, Overlaps: true, Run: onOne((*Env).Leader, pauseOne)},
		{Name: "pause-follower", Weight: 1, Overlaps: true, Run: onOne((*Env).Follower, pauseOne)},
		{Name: "terminate-leader", Weight: 8, Run: onOne((*Env).Leader, terminateLeader)},
		{Name: "rolling-restart", Weight: 1, Run: onAll(rollingRestart)},
	}
}

// killOne is kill -9 and, after a while, a restart.
func killOne(ctx context.Context, e *Env, victim *localcluster.Node) error {
	return e.kill(ctx, []*localcluster.Node{victim})
}

// killLeaders kills each new leader, like a request that crashes a server. The killed node
// runs again before the next one is killed.
func killLeaders(ctx context.Context, e *Env, _ []*localcluster.Node) error {
	for left := 4 + e.Rand.IntN(5); left > 0 && ctx.Err() == nil; left-- {
		leader, err := e.currentLeader(ctx)
		if err != nil {
			return err
		}
		e.Log.Info("kill -9", "nodes", Names([]*localcluster.Node{leader}))
		if err := leader.Kill(); err != nil {
			return err
		}
		if err := e.Return(ctx, leader); err != nil {
			return err
		}
		sleep.For(ctx, e.Between(0, time.Second))
	}
	return nil
}

// killMajority removes the quorum. Writes without an acknowledgement may be lost then,
// acknowledged ones may not.
func killMajority(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	return e.kill(ctx, nodes[:len(nodes)/2+1])
}

// killAll kills every process at once; they start again in another order.
func killAll(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	return e.kill(ctx, nodes)
}

// downtime is how long killed nodes stay down. A supervisor restarts a process
// within seconds, and the sooner they are back, the more faults a run sees.
func (e *Env) downtime() time.Duration { return e.Between(0, 2*time.Second) }

func (e *Env) kill(ctx context.Context, victims []*localcluster.Node) error {
	e.Log.Info("kill -9", "nodes", Names(victims))
	var errs []error
	for _, n := range victims {
		errs = append(errs, n.Kill())
	}
	sleep.For(ctx, e.downtime())
	e.Rand.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	return errors.Join(append(errs, e.Return(ctx, victims...))...)
}

// pauseOne is SIGSTOP, far shorter than an election to far longer, and SIGCONT:
// the process then finds itself in a cluster that went on without it.
func pauseOne(ctx context.Context, e *Env, victim *localcluster.Node) error {
	pause := e.Between(200*time.Millisecond, 2*time.Second)
	if e.Rand.IntN(4) == 0 {
		pause = e.Between(2*time.Second, 10*time.Second)
	}
	e.Log.Info("SIGSTOP", "node", victim.ID, "for", pause.Round(time.Millisecond))
	e.Stall()
	if err := victim.Pause(); err != nil {
		return err
	}
	sleep.For(ctx, pause)
	return errors.Join(victim.Resume(), e.Return(ctx, victim))
}

// terminateLeader is SIGTERM: the leader transfers leadership and exits with 0.
func terminateLeader(ctx context.Context, e *Env, victim *localcluster.Node) error {
	return e.restart(ctx, victim)
}

// rollingRestart is an upgrade: one node after the other.
func rollingRestart(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	for _, n := range nodes {
		if err := e.restart(ctx, n); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (e *Env) restart(ctx context.Context, n *localcluster.Node) error {
	e.Log.Info("SIGTERM", "node", n.ID)
	patience, cancel := Healing(ctx)
	defer cancel()
	if err := n.Terminate(patience); err != nil {
		e.Violate("fault", "a node that was stopped with SIGTERM: %v", err)
		if err := n.Kill(); err != nil {
			return err
		}
	}
	return e.Return(ctx, n)
}
