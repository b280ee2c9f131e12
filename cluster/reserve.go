package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// withdrawGrace is how long a reserve whose wait is over still waits for a
// Reserve that is under way for it.
const withdrawGrace = 2 * time.Second

// Watch implements api.Queue.
func (s *Shard) Watch() job.Watch { return s.machine.Watch() }

// SettingsVersion grows whenever settings of topics have changed on this node.
func (s *Shard) SettingsVersion() uint64 { return s.machine.SettingsVersion() }

type waitOutcome struct {
	jobs []*jobpb.Reserved
	err  error
}

// Reserve implements api.Queue. The wait may span several leaders: each time one
// is lost, the waiter registers with the next, and the client notices nothing.
func (s *Shard) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	select {
	case <-s.draining:
		return nil, errDraining()
	default:
	}
	end := time.NewTimer(wait)
	defer end.Stop()
	poll := wait <= 0
	if poll {
		// A poll does not wait for jobs, but it does for a leader.
		end.Reset(s.cfg.HoldTime)
	}
	for {
		room, changed := s.waitRoom()
		if room == nil {
			select {
			case <-changed:
				continue
			case <-end.C:
				return nil, errNoLeader()
			case <-s.draining:
				return nil, errDraining()
			case <-s.ctx.Done():
				return nil, errDraining()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		o, over := s.waitIn(ctx, room, r, poll, end)
		switch {
		case over || o.err == nil:
			return o.jobs, o.err
		case errors.Is(o.err, dispatch.ErrFull):
			return nil, &job.Error{Code: job.CodeOverloaded, RetryAfter: time.Second,
				Message: "too many reserves are waiting on the leader; try again later"}
		}
		if _, refused := errors.AsType[*job.Error](o.err); refused {
			return nil, o.err
		}
		// The leader was lost. It does not come to a loop: a dispatcher that stops is
		// no room any more, and a stream that breaks keeps what is added until its
		// leader leads.
	}
}

// waitIn waits in one room. over means that the wait itself is at its end,
// whatever the outcome.
func (s *Shard) waitIn(ctx context.Context, room waitRoom, r *jobpb.Reserve, poll bool, end *time.Timer) (o waitOutcome, over bool) {
	v := &visit{shard: s, room: room, out: make(chan waitOutcome, 1)}
	v.w = &dispatch.Waiter{Reserve: r, Poll: poll, Done: v.done}
	room.Add(v.w)
	select {
	case o = <-v.out:
		return o, false
	case <-ctx.Done():
		v.abandon()
		return waitOutcome{err: ctx.Err()}, true
	case <-end.C:
	case <-s.draining:
	}
	room.Withdraw(v.w, true)
	grace := time.NewTimer(withdrawGrace)
	defer grace.Stop()
	select {
	case o = <-v.out:
		if poll && o.err != nil {
			return waitOutcome{err: errNoLeader()}, true
		}
		return waitOutcome{jobs: o.jobs}, true
	case <-ctx.Done():
		v.abandon()
		return waitOutcome{err: ctx.Err()}, true
	case <-grace.C:
		v.abandon()
		return waitOutcome{}, true
	}
}

// visit is one stay of a reserve in one room.
type visit struct {
	shard     *Shard
	room      waitRoom
	w         *dispatch.Waiter
	out       chan waitOutcome // holds one
	abandoned atomic.Bool
}

func (v *visit) done(jobs []*jobpb.Reserved, err error) {
	v.out <- waitOutcome{jobs, err}
	if v.abandoned.Load() {
		v.clear()
	}
}

// abandon withdraws a waiter whose consumer is gone. Jobs that were assigned to
// it before the withdrawal took effect go back, whichever side comes second.
func (v *visit) abandon() {
	v.abandoned.Store(true)
	v.room.Withdraw(v.w, false)
	v.clear()
}

func (v *visit) clear() {
	select {
	case o := <-v.out:
		v.shard.giveBack(o.jobs)
	default:
	}
}

// giveBack releases jobs that no consumer saw. It does not block; if it fails,
// their TTR brings them back.
func (s *Shard) giveBack(jobs []*jobpb.Reserved) {
	if len(jobs) > 0 {
		s.submit(dispatch.GiveBack(jobs), true, func([]*jobpb.Result, error) {})
	}
}
