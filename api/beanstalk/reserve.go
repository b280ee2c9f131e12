package beanstalk

import (
	"context"
	"errors"
	"time"

	"tarry/job/jobpb"
)

// forever is a wait without end.
const forever = time.Duration(1<<63 - 1)

// waitSlice bounds one wait in the queue; longer ones are made of several.
const waitSlice = time.Hour

// errGone is the cause of a wait that the client ended.
var errGone = errors.New("the client has closed the connection")

// reserve waits up to timeout for a job of the watched tubes. An error ends the
// connection.
func (c *conn) reserve(timeout time.Duration) error {
	c.work()
	start := time.Now()
	soon := c.held.soon(start)
	if soon <= 0 {
		// Only a job that is ready now comes before the warning.
		return c.answer(c.wait(c.server.ctx, 0), deadlineSoon)
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
	return c.answer(c.waitWatched(start, end), outcome)
}

// outcome is how a wait ended: with a job, with an error, or with neither.
type outcome struct {
	job *jobpb.Reserved
	err error
}

// answer replies to a reserve; nothing is what to say without a job.
func (c *conn) answer(o outcome, nothing string) error {
	switch {
	case o.job != nil:
		c.hold(o.job)
	case o.err == nil:
		c.say(nothing)
	case errors.Is(o.err, errGone):
		c.say(timedOut) // a client that closed its sending half reads it
	case c.server.ctx.Err() != nil:
		return errClose
	default:
		c.fail(o.err)
	}
	return c.flushFull()
}

// waitWatched waits until end after start while the client stays connected.
func (c *conn) waitWatched(start time.Time, end time.Duration) outcome {
	ctx, cancel := context.WithCancelCause(c.server.ctx)
	defer cancel(nil)
	if end > 0 {
		defer c.in.watch(func() { cancel(errGone) })()
		c.server.counts.waiting.Add(1)
		defer c.server.counts.waiting.Add(-1)
		c.server.tubes.wait(c.watched, 1)
		defer c.server.tubes.wait(c.watched, -1)
	}
	for {
		left := max(end-time.Since(start), 0)
		o := c.wait(ctx, min(left, waitSlice))
		if o.err != nil && context.Cause(ctx) != nil {
			o.err = context.Cause(ctx)
		}
		if o.job != nil || o.err != nil || time.Since(start) >= end {
			return o
		}
		// The wait ended before its time: a slice is over, or the node drains
		// and the next wait says so.
	}
}

func (c *conn) wait(ctx context.Context, d time.Duration) outcome {
	jobs, err := c.server.Queue.Reserve(ctx, &jobpb.Reserve{Topics: c.watched, Max: 1}, d)
	if err != nil || len(jobs) == 0 {
		return outcome{err: err}
	}
	return outcome{job: jobs[0]}
}

// hold replies with a job that is reserved for this connection.
func (c *conn) hold(j *jobpb.Reserved) {
	c.held.add(j.Seq, j.Generation, time.Duration(j.TtrMs)*time.Millisecond)
	c.give("RESERVED", j.Seq, j.Body)
}

// reserveJob reserves one job of any tube.
func (c *conn) reserveJob(id uint64) {
	if id == 0 {
		c.say(notFound)
		return
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: &jobpb.Ref{Seq: id}}}})
	switch {
	case r == nil:
	case r.Code == jobpb.Code_OK && len(r.Jobs) == 1:
		c.work()
		c.hold(r.Jobs[0])
	default:
		c.say(notFound)
	}
}

// work marks the connection as a worker's.
func (c *conn) work() {
	if !c.worker {
		c.worker = true
		c.server.counts.workers.Add(1)
	}
}
