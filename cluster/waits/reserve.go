package waits

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// cancelGrace is how long a reserve still waits, after its time, for a Reserve operation
// that is under way for it.
const cancelGrace = 2 * time.Second

type outcome struct {
	jobs []*jobpb.Reserved
	err  error
}

// Reserve waits for jobs, for at most wait; without any it returns none. The wait may
// span several leaders: each time one is lost, the waiter registers with the next.
func (c *Client) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	draining := c.drain.Began()
	select {
	case <-draining:
		return nil, errDraining()
	default:
	}
	end := time.NewTimer(wait)
	defer end.Stop()
	poll := wait <= 0
	if poll {
		// A poll does not wait for jobs, but it waits for a leader.
		end.Reset(c.o.HoldTime)
	}
	for {
		queue, changed := c.queue()
		if queue == nil {
			select {
			case <-changed:
				continue
			case <-end.C:
				return nil, leaderrpc.NoLeader()
			case <-draining:
				return nil, errDraining()
			case <-c.ctx.Done():
				return nil, errDraining()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		o, over := c.waitIn(ctx, queue, r, poll, end, draining)
		switch {
		case over || o.err == nil:
			return o.jobs, o.err
		case errors.Is(o.err, dispatch.ErrFull):
			return nil, TooMany()
		}
		if _, refused := errors.AsType[*job.Error](o.err); refused {
			return nil, o.err
		}
		// The leader was lost. This cannot spin: queue does not return a dispatcher that
		// has stopped, and a broken stream keeps new waiters until its leader leads.
	}
}

// waitIn waits in one queue. over reports that the whole wait has ended, whatever the
// outcome.
func (c *Client) waitIn(ctx context.Context, queue Queue, r *jobpb.Reserve, poll bool, end *time.Timer, draining <-chan struct{}) (o outcome, over bool) {
	a := &attempt{giveBack: c.o.GiveBack, queue: queue, out: make(chan outcome, 1)}
	a.w = &dispatch.Waiter{Reserve: r, Poll: poll, Done: a.done}
	queue.Add(a.w)
	select {
	case o = <-a.out:
		return o, false
	case <-ctx.Done():
		a.abandon()
		return outcome{err: ctx.Err()}, true
	case <-end.C:
	case <-draining:
	}
	queue.Cancel(a.w, true)
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case o = <-a.out:
		if poll && o.err != nil {
			return outcome{err: leaderrpc.NoLeader()}, true
		}
		return outcome{jobs: o.jobs}, true
	case <-ctx.Done():
		a.abandon()
		return outcome{err: ctx.Err()}, true
	case <-grace.C:
		a.abandon()
		return outcome{}, true
	}
}

// attempt is one wait of a reserve in one queue.
type attempt struct {
	giveBack  func([]*jobpb.Reserved)
	queue     Queue
	w         *dispatch.Waiter
	out       chan outcome // holds one
	abandoned atomic.Bool
}

func (a *attempt) done(jobs []*jobpb.Reserved, err error) {
	a.out <- outcome{jobs, err}
	if a.abandoned.Load() {
		a.clear()
	}
}

// abandon cancels a waiter whose consumer has disconnected. Jobs that were assigned to
// it before the cancellation took effect are released.
func (a *attempt) abandon() {
	a.abandoned.Store(true)
	a.queue.Cancel(a.w, false)
	a.clear()
}

func (a *attempt) clear() {
	select {
	case o := <-a.out:
		a.giveBack(o.jobs)
	default:
	}
}

func errDraining() *job.Error {
	return job.NotApplied("this node is draining; ask another node")
}

// TooMany returns the error of a reserve past the bound on waiters of the leader.
func TooMany() *job.Error {
	return &job.Error{Code: job.CodeOverloaded, RetryAfter: time.Second,
		Message: "too many reserves are waiting on the leader; try again later"}
}
