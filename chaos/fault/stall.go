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

// Stall returns the faults of a leader that is suspended and does not notice it.
func Stall() []Fault {
	return []Fault{{Name: "stalled-leader", Weight: 4, Overlaps: true, Run: stalledLeader}}
}

// stalls is how often one injection suspends a leader.
const stalls = 3

// stalledLeader is SIGSTOP until another node leads and has acknowledged writes. When the
// old leader resumes it receives the followers' replies to its earlier messages, and reads
// that clients sent in between. It must not serve the reads from its state because of the
// old replies.
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
	// answersHeld is the time before the stop in which the leader receives nothing, so that
	// several replies are on their way. It is well below the leader's lease.
	answersHeld = 50 * time.Millisecond
	// answersLate bounds the time after it resumes until it gets the replies that had not
	// reached its socket buffers.
	answersLate = 20 * time.Millisecond
	// passing bounds the wait for another leader. Because of a concurrent fault there may
	// be no majority, and so no leader.
	passing = 10 * time.Second
)

// stall suspends a leader until another one leads. The replies of one follower are in its
// socket buffers, so that its lease seems valid. Those of the others arrive a moment after
// it resumes.
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
	e.Stall()
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

// holdAnswers delays what other nodes send to a node until release; of two holds the first
// counts. Without network namespaces only what is in flight at the stop is delayed.
func (e *Env) holdAnswers(ctx context.Context, victim *localcluster.Node, others []string) (release func() error, err error) {
	if e.Network == nil {
		return func() error { return nil }, nil
	}
	return e.Network.Apply(ctx, network.Rule{From: others, To: []string{victim.ID}, Ports: e.ports(clusterAddr), Delay: time.Minute})
}

// passedOver waits until another node leads; false: none did.
func (e *Env) passedOver(ctx context.Context, victim *localcluster.Node) bool {
	return until(ctx, passing, func() bool {
		return slices.ContainsFunc(e.Cluster.Nodes(), func(n *localcluster.Node) bool {
			if n == victim || !n.Running() {
				return false
			}
			leads, err := e.metric(ctx, n, `tarry_raft_is_leader{shard="0"}`)
			return err == nil && leads == 1
		})
	})
}
