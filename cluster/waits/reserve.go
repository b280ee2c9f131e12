package waits

import (
	"context"
	"errors"
	"time"

	"tarry/cluster/leaderrpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// cancelGrace is how long a reserve still waits, after its time, for a Reserve operation
// that is under way for it.
const cancelGrace = 2 * time.Second

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
		case over || o.Err == nil:
			return o.Jobs, o.Err
		case errors.Is(o.Err, dispatch.ErrFull):
			return nil, TooMany()
		}
		if _, refused := errors.AsType[*job.Error](o.Err); refused {
			return nil, o.Err
		}
		// The leader was lost. This cannot spin: queue does not return a dispatcher that
		// has stopped, and a broken stream keeps new waiters until its leader leads.
	}
}

// waitIn waits in one queue. over reports that the whole wait has ended, whatever the
// outcome.
func (c *Client) waitIn(ctx context.Context, queue Queue, r *jobpb.Reserve, poll bool, end *time.Timer, draining <-chan struct{}) (o dispatch.Got, over bool) {
	out := dispatch.NewOutcome(c.o.GiveBack)
	w := &dispatch.Waiter{Reserve: r, Poll: poll, Done: out.Done}
	abandon := func() {
		queue.Cancel(w, false)
		out.Abandon()
	}
	queue.Add(w)
	select {
	case o = <-out.C:
		return o, false
	case <-ctx.Done():
		abandon()
		return dispatch.Got{Err: ctx.Err()}, true
	case <-end.C:
	case <-draining:
	}
	queue.Cancel(w, true)
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	select {
	case o = <-out.C:
		if poll && o.Err != nil {
			return dispatch.Got{Err: leaderrpc.NoLeader()}, true
		}
		return dispatch.Got{Jobs: o.Jobs}, true
	case <-ctx.Done():
		abandon()
		return dispatch.Got{Err: ctx.Err()}, true
	case <-grace.C:
		abandon()
		return dispatch.Got{}, true
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
