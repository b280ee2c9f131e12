package fault

import (
	"context"
	"fmt"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Lasting returns the faults of nodes that never come back.
func Lasting() []Fault {
	return []Fault{{Name: "down-for-good", Weight: 1, Run: onAll(downForGood)}}
}

// newcomers is the prefix of the ids of nodes that take the place of lost ones.
const newcomers = "m"

// mostNewcomers bounds the nodes that are lost in a run: each leaves its files behind.
const mostNewcomers = 4

// downForGood kills a minority for ever. The others go on, and also after each of them was
// restarted. Then nodes with other ids take the places of those that are lost.
func downForGood(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	lost := nodes[:(len(nodes)-1)/2]
	if len(lost) == 0 || lastNewcomer(nodes) >= mostNewcomers {
		return ErrNoVictim
	}
	e.Log.Info("kill -9 for good", "nodes", Names(lost))
	for _, n := range lost {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	rest := nodes[len(lost):]
	sleep.For(ctx, e.Between(2*time.Second, 10*time.Second))
	if e.Rand.IntN(2) == 0 {
		for _, n := range rest { // each restart leaves no majority for a moment
			if err := e.restart(ctx, n); err != nil {
				return err
			}
		}
		sleep.For(ctx, e.Hold())
	}
	for _, n := range lost {
		if err := e.supersede(ctx, n); err != nil {
			return err
		}
	}
	return e.Return(ctx, e.Cluster.Nodes()...)
}

// lastNewcomer returns the largest number of a newcomer.
func lastNewcomer(nodes []*localcluster.Node) (last int) {
	for _, n := range nodes {
		var number int
		if _, err := fmt.Sscanf(n.ID, newcomers+"%d", &number); err == nil {
			last = max(last, number)
		}
	}
	return last
}

// supersede puts a new node in the place of one that is lost.
func (e *Env) supersede(ctx context.Context, lost *localcluster.Node) error {
	n, err := e.Cluster.Add(fmt.Sprint(newcomers, lastNewcomer(e.Cluster.Nodes())+1))
	if err != nil {
		return err
	}
	if !e.Claimed.claim(e, n) {
		return ErrNoVictim
	}
	e.Log.Info("a new node takes the place of a lost one", "node", n.ID, "lost", lost.ID)
	if err := n.Start(); err != nil {
		return err
	}
	e.remove(ctx, lost)
	e.awaitVoter(ctx, n)
	return e.Cluster.Forget(lost)
}
