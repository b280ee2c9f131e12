package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/network"
	"tarry/internal/sleep"
)

// Stall are the faults of a leader that stands still and does not know it.
func Stall() []Fault {
	return []Fault{{Name: "stalled-leader", Weight: 4, Overlaps: true, Run: stalledLeader}}
}

// stalls is how often one injection stops a leader.
const stalls = 3

// stalledLeader is SIGSTOP until another node leads and has acknowledged writes.
// The answers of followers to what the leader had sent before reach it when it goes
// on, and so do reads that clients sent meanwhile. It must not take the one for
// leave to answer the other from what it has.
func stalledLeader(ctx context.Context, e *Env) error {
	for n := 0; n < stalls && ctx.Err() == nil; n++ {
		e.Claimed.Release(e)
		victim, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(e.stall(ctx, victim), e.Return(ctx, victim)); err != nil {
			return err
		}
	}
	return nil
}

const (
	// answersHeld is how long before it stops the leader hears nothing: several
	// answers are then on their way. It is well below the leader's lease.
	answersHeld = 50 * time.Millisecond
	// answersLate bounds how long after it goes on it gets those of them that had
	// not come to its socket buffers while it stood still.
	answersLate = 20 * time.Millisecond
	// passing bounds the wait for another leader. Another fault may have taken the
	// majority away, so none need come.
	passing = 10 * time.Second
)

// stall stops a leader until another one leads. The answers of one follower wait in
// its socket buffers, so that it finds its lease in order; those of the others come a
// moment after it went on.
func (e *Env) stall(ctx context.Context, victim *localcluster.Node) error {
	others := e.without(victim)
	e.Rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	inTime, err := e.holdAnswers(ctx, victim, others[:1])
	if err != nil {
		return err
	}
	late, err := e.holdAnswers(ctx, victim, others)
	if err != nil {
		return errors.Join(err, inTime())
	}
	sleep.For(ctx, answersHeld)
	e.Log.Info("SIGSTOP with answers on their way", "node", victim.ID)
	if err := errors.Join(victim.Pause(), inTime()); err != nil {
		return errors.Join(err, late())
	}
	if e.passedOver(ctx, victim) {
		e.Count("leaders passed over while they stood still", 1)
		sleep.For(ctx, e.Between(100*time.Millisecond, 300*time.Millisecond)) // writes, and then reads
	}
	err = victim.Resume()
	sleep.For(ctx, e.Between(0, answersLate))
	return errors.Join(err, late())
}

// holdAnswers keeps what other nodes send to a node on the way, until release; of
// two holds the first counts. Without lines of our own only what the moment of the
// stop brings is under way.
func (e *Env) holdAnswers(ctx context.Context, victim *localcluster.Node, others []string) (release func() error, err error) {
	if e.Network == nil {
		return func() error { return nil }, nil
	}
	return e.Network.Apply(ctx, network.Rule{From: others, To: []string{victim.ID}, Ports: e.ports(clusterAddr), Delay: time.Minute})
}

// passedOver waits until another node leads; false: none came.
func (e *Env) passedOver(ctx context.Context, victim *localcluster.Node) bool {
	return until(ctx, passing, func() bool {
		return slices.ContainsFunc(e.Cluster.Nodes(), func(n *localcluster.Node) bool {
			if n == victim || !n.Running() {
				return false
			}
			leads, err := e.metric(ctx, n, "tarry_raft_is_leader")
			return err == nil && leads == 1
		})
	})
}
