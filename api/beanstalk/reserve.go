package beanstalk

import (
	"context"
	"errors"
	"time"

	"tarry/api/access"
	"tarry/auth"
	"tarry/job/jobpb"
)

// forever is a wait without a limit.
const forever = time.Duration(1<<63 - 1)

// waitSlice bounds one wait in the queue; longer ones are made of several.
const waitSlice = time.Hour

// errGone is the cause of a wait that the client ended.
var errGone = errors.New("the client has closed the connection")

// reserve waits up to timeout for a job of the watched tubes. An error ends the
// connection.
func (c *conn) reserve(timeout time.Duration) error {
	c.work()
	if j := c.takeAhead(); j != nil {
		// It was allowed then. In the mode that reports, this reports what is not.
		_ = c.server.Access.AllowOn(c.ctx, auth.Consume, c.reservable())
		return c.replyReserve(outcome{job: j}, "")
	}
	start := time.Now()
	soon := c.held.soon(start)
	if soon <= 0 {
		// Only a job that is ready now takes precedence over DEADLINE_SOON.
		return c.replyReserve(c.wait(c.by(c.server.ctx), 0), deadlineSoon)
	}
	end, outcome := timeout, timedOut
	if soon <= timeout && soon != forever {
		end, outcome = soon, deadlineSoon
	}
	if end > 0 {
		if err := c.flush(); err != nil {
			return err
		}
	}
	return c.replyReserve(c.waitWatched(start, end), outcome)
}

// outcome is how a wait ended: with a job, with an error, or with neither.
type outcome struct {
	job *jobpb.Reserved
	err error
}

// replyReserve replies to a reserve; nothing is the reply when there is no job.
func (c *conn) replyReserve(o outcome, nothing string) error {
	switch {
	case o.job != nil:
		c.replyReserved(o.job)
	case o.err == nil:
		c.say(nothing)
	case errors.Is(o.err, errGone):
		c.say(timedOut) // a client that closed only its sending half can read it
	case c.server.ctx.Err() != nil:
		return errClose
	default:
		c.fail(o.err)
	}
	return c.flushFull()
}

// waitWatched waits for a job until end after start, while the client stays connected.
func (c *conn) waitWatched(start time.Time, end time.Duration) outcome {
	ctx, cancel := context.WithCancelCause(c.by(c.server.ctx))
	defer cancel(nil)
	if end > 0 {
		place, err := c.server.Access.Wait(ctx)
		if err != nil {
			return outcome{err: err}
		}
		defer place.End()
		allowed, stop := c.server.Access.WhileAllowed(ctx, auth.Consume, c.reservable())
		defer stop()
		ctx = allowed
		defer c.in.watch(func() { cancel(errGone) })()
		c.server.counts.waiting.Add(1)
		defer c.server.counts.waiting.Add(-1)
		c.server.tubes.wait(c.watched, 1)
		defer c.server.tubes.wait(c.watched, -1)
	}
	for {
		left := max(end-time.Since(start), 0)
		slice := min(left, waitSlice)
		if c.ahead.lost { // what it waits for may be its own
			slice = min(slice, c.ahead.pause)
		}
		o := c.wait(ctx, slice)
		switch {
		case o.err == nil:
		case access.Revoked(ctx):
			o.err = access.NotAnyMore()
		case context.Cause(ctx) != nil:
			o.err = context.Cause(ctx)
		}
		if o.job != nil || o.err != nil || time.Since(start) >= end {
			return o
		}
		// The wait ended early: a slice is over, or the node drains and the next
		// wait returns that error.
		if c.ahead.lost {
			c.giveBack()
		}
	}
}

func (c *conn) wait(ctx context.Context, d time.Duration) outcome {
	jobs, err := c.server.Queue.Reserve(ctx, &jobpb.Reserve{Topics: c.reservable(), Max: 1}, d)
	if err != nil || len(jobs) == 0 {
		return outcome{err: err}
	}
	return outcome{job: jobs[0]}
}

// replyReserved records the reservation of a job and replies with the job.
func (c *conn) replyReserved(j *jobpb.Reserved) {
	c.held.add(j.Seq, j.Generation, time.Duration(j.TtrMs)*time.Millisecond)
	_ = c.server.Access.Charge(c.who.principal.TokenID(), 0, int64(len(j.Body)), true)
	c.give("RESERVED", j.Seq, j.Body)
}

// reserveJob reserves one job of any tube.
func (c *conn) reserveJob(id uint64) {
	if id == 0 {
		c.say(notFound)
		return
	}
	c.mayHold()
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: &jobpb.Ref{Seq: id}}}})
	switch {
	case r == nil:
	case r.Code == jobpb.Code_OK && len(r.Jobs) == 1:
		c.work()
		c.replyReserved(r.Jobs[0])
	default:
		c.failed(r)
	}
}

// mayHold notes that the connection may have jobs to give back when it ends.
func (c *conn) mayHold() {
	if c.returning == nil {
		c.returning = c.server.returns.add(c.net, c.host())
	}
}

// work counts the connection as a worker.
func (c *conn) work() {
	c.mayHold()
	if !c.worker {
		c.worker = true
		c.server.counts.workers.Add(1)
	}
}
