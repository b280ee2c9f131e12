package cluster

import (
	"context"
	"errors"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/fsm"
	"tarry/job"
)

// replacement asks the loop that leads to make a staged state that of the cluster.
type replacement struct {
	state *fsm.Staged
	done  chan error // holds one
}

// enqueueReplacement is how long Raft may take to begin a replacement.
const enqueueReplacement = 30 * time.Second

// Replace makes a staged state that of the whole cluster, if this node leads. It returns once a
// majority has it and this node leads again, which takes as long as the state takes to send. It
// ends the staged state. An error is a job.Error that reports whether the state was replaced.
//
// Meanwhile this node does not lead for its clients: it stops handing out jobs, and nothing is
// proposed. Raft leads on.
func (s *Shard) Replace(ctx context.Context, state *fsm.Staged) error {
	r := replacement{state: state, done: make(chan error, 1)}
	select {
	case s.replacements <- r:
	case <-ctx.Done():
		return notReplaced(errors.Join(ctx.Err(), state.Abort()))
	case <-s.ctx.Done():
		return notReplaced(errors.Join(errors.New("this node stops"), state.Abort()))
	}
	if err := <-r.done; err != nil {
		return err
	}
	if s.established(ctx) == nil || s.machine.Unconfirmed() {
		return job.Unknown("the backup is the state of a majority, but leadership was lost then: \"tarry cluster events\" and the counts show whether it stayed")
	}
	return nil
}

func notReplaced(why error) *job.Error {
	return job.NotApplied("the state was not replaced: %w", why)
}

// replace runs in the loop that leads, while nothing leads.
func (s *Shard) replace(leads bool, state *fsm.Staged) error {
	if !leads {
		return notReplaced(errors.Join(leaderrpc.ErrNotLeader, state.Abort()))
	}
	// What is under way gets its outcome first. Raft would abort it.
	if _, err := s.barrier(s.ctx); err != nil {
		return notReplaced(errors.Join(err, state.Abort()))
	}
	r := s.adapter.Replace(state)
	err := s.raft.Restore(r.Meta, r.Reader, enqueueReplacement)
	switch taken := r.End(); {
	case !taken:
		return notReplaced(errors.Join(err, state.Abort()))
	case err != nil:
		return job.Unknown("this node has the backup's state, but leadership was lost before a majority had it: the whole cluster has either that or its state before, as the next leader has: %w", err)
	}
	return nil
}

// confirmed returns an error while the state is one by which a backup has replaced another, and
// it is not known yet whether the cluster has it.
func (s *Shard) confirmed() error {
	if s.machine.Unconfirmed() {
		return job.NotApplied("a backup has just replaced the state of this node, and it is not known yet whether a majority has it; try again")
	}
	return nil
}
