package beanstalk

import (
	"context"
	"errors"
	"os"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// A consumer that takes one job at a time sends a reserve after each delete. Each would be a
// commit of its own. So such a connection reserves its next job in the entry that deletes the
// last one, and keeps it for the next command: a reserve gets it without a commit. Before any
// other command, and if no command comes in time, the job is given back as if it had never
// been reserved.

const (
	// DefaultHold is how long a job is kept for the next reserve. It covers a round trip to a
	// client nearby.
	DefaultHold = 5 * time.Millisecond

	// learnedAfter is how many deletes in a row must have been followed by a reserve in time
	// before the next one reserves ahead.
	learnedAfter = 4

	// replyTime is what the way of the commit and of its reply may take besides. A job whose
	// next reserve comes later is given back: its reservation began so early that less than
	// its TTR would be left.
	replyTime = 200 * time.Millisecond

	// minRetry and maxRetry bound the pause before it is tried again to give a job back.
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second

	// retryTime bounds such an attempt, because the next command waits for it.
	retryTime = time.Second

	// maxHold bounds by how much a reservation lasts longer than its TTR because its job is
	// kept first. Only tests keep jobs for longer, whose reservations are not covered then.
	maxHold = time.Second
)

// What becomes of a job that was reserved ahead. One that is kept when its connection ends
// counts as neither.
const (
	taken = iota
	givenBack
	aheadOutcomes // how many there are
)

// ahead is what a connection expects of its client, and the job that it keeps for it.
type ahead struct {
	follows int // deletes in a row that a reserve has followed in time
	// deleted: the last command was a delete of a job that the connection had reserved.
	deleted bool
	// until is when the next command is late; zero while it may be in the input already.
	until time.Time
	job   *jobpb.Reserved
	// ends is until when the reservation of job still lasts its TTR; zero if the client asked
	// for it before it began.
	ends time.Time
	// holdMs is for how much longer than its TTR it is reserved.
	holdMs int64
	// over is when the reservation of job has expired by this node's clock, or later.
	over time.Time
	// lost: the job was to be given back, and the outcome is unknown. It is tried again at
	// retryAt, and pause after that.
	lost    bool
	retryAt time.Time
	pause   time.Duration
}

// next prepares for a command. It is called before each.
func (c *conn) next(v verb) {
	a := &c.ahead
	if !a.deleted && a.job == nil {
		return
	}
	late := !a.until.IsZero() && time.Now().After(a.until)
	expected := (v == reserve || v == reserveTimeout) && !late
	switch {
	case !expected:
		a.follows = 0
	case a.deleted:
		a.follows = min(a.follows+1, learnedAfter)
	}
	a.deleted = false
	if a.lost && v == put {
		return // it does not wait for an attempt that may fail again
	}
	if a.job != nil && (!expected || a.lost || !a.ends.IsZero() && time.Now().After(a.ends)) {
		c.giveBack()
	}
}

// takeAhead returns the job that is kept for a reserve; nil: there is none.
func (c *conn) takeAhead() *jobpb.Reserved {
	a := &c.ahead
	if a.job == nil || a.lost {
		return nil
	}
	j := a.job
	a.job = nil
	c.server.counts.ahead[taken].Add(1)
	return j
}

// expectsReserve reports whether a reserve is expected after a delete, and how long its job may
// have to be kept: not at all if the reserve is in the input.
func (c *conn) expectsReserve() (hold time.Duration, expected bool) {
	if c.ahead.job != nil || c.server.Draining() || !c.mayReserve() {
		return 0, false
	}
	line, state := c.in.peek()
	if state == whole {
		cmd, bad := parse(line)
		return 0, !bad && (cmd.verb == reserve || cmd.verb == reserveTimeout)
	}
	hold = c.server.hold
	return hold, state == partial && hold > 0 && c.ahead.follows == learnedAfter
}

// deleteAndReserve deletes a job that the connection has reserved, and reserves the next one.
// It returns nil when it has replied with a failure.
func (c *conn) deleteAndReserve(ref *jobpb.Ref, hold time.Duration) *jobpb.Result {
	r := &jobpb.Reserve{Topics: c.reservable(), Max: 1}
	c.ahead.ends = time.Time{}
	if hold > 0 {
		hold += replyTime
		c.ahead.ends = time.Now().Add(hold) // before the reservation begins
		r.HoldMs = min(hold, maxHold).Milliseconds()
	}
	result, jobs, err := c.server.Queue.DeleteAndReserve(c.ctx, deletion(ref).GetDelete(), r)
	if err != nil {
		c.fail(err)
		return nil
	}
	if len(jobs) > 0 {
		j := jobs[0]
		c.ahead.job, c.ahead.holdMs = j, r.HoldMs
		c.ahead.over = time.Now().Add(time.Duration(j.TtrMs+r.HoldMs) * time.Millisecond)
	}
	return result
}

// deleteAgain deletes a job whose reservation by this connection has expired. If the reserve
// behind the first delete has taken the same job, nobody else has it.
func (c *conn) deleteAgain(id uint64) *jobpb.Result {
	j := c.ahead.job
	if j == nil || j.Seq != id {
		return c.do(deletion(&jobpb.Ref{Seq: id}))
	}
	r := c.do(deletion(&jobpb.Ref{Seq: id, Generation: j.Generation}))
	if r == nil {
		c.ahead.fails()
	} else {
		c.ahead.job = nil
	}
	return r
}

// fill reads more input. A job that is kept for the next reserve is given back if nothing
// arrives in time.
func (c *conn) fill() error {
	a := &c.ahead
	if a.deleted && a.until.IsZero() {
		a.until = time.Now().Add(c.server.hold)
	}
	if a.job == nil {
		return c.in.fill()
	}
	end := a.until
	if a.lost {
		end = a.retryAt
	}
	c.setReadDeadline(end)
	err := c.in.fill()
	c.setReadDeadline(time.Time{})
	if !errors.Is(err, os.ErrDeadlineExceeded) || c.server.ctx.Err() != nil {
		return err
	}
	c.in.err = nil
	a.follows = 0
	c.giveBack()
	return nil
}

// fails notes that it is unknown whether the connection still has the job.
func (a *ahead) fails() {
	a.pause = min(max(2*a.pause, minRetry), maxRetry)
	a.lost, a.retryAt = true, time.Now().Add(a.pause)
}

// giveBack gives back the job that was kept. If that fails, it is repeated before the next
// commands, while the connection is quiet or its reserve waits, and when it ends, until the
// reservation is over.
func (c *conn) giveBack() {
	a := &c.ahead
	limit := returnTime
	if a.lost {
		limit = retryTime
	}
	if a.lost && time.Now().After(a.over) {
		a.job, a.lost, a.pause = nil, false, 0
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	results, err := c.server.Queue.Do(ctx, c.aheadBack(nil))
	if err == nil {
		err = notReturned(results)
	}
	if err != nil {
		a.fails()
		c.server.Logger.Debug("a job that was reserved ahead could not be given back yet", "client", c.net.RemoteAddr().String(), "error", err)
		return
	}
	a.job, a.lost, a.pause = nil, false, 0
	c.server.counts.ahead[givenBack].Add(1)
}

// notReturned returns why one of several releases was refused; nil if the connection has none
// of their jobs any more.
func notReturned(results []*jobpb.Result) error {
	for _, r := range results {
		switch err := job.ResultError(r); job.CodeOf(err) {
		case job.CodeNotFound, job.CodeStaleToken, job.CodeNotReserved:
		default:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// aheadBack appends the operation that gives back the job that is kept, if there is one. The
// consumer has not seen the job: it has its place, its attempts and its last delay as before.
// The node does it, because the client may not be allowed to do anything any more.
func (c *conn) aheadBack(ops []*jobpb.Op) []*jobpb.Op {
	j := c.ahead.job
	if j == nil {
		return ops
	}
	release := oplog.GiveBack(j, c.ahead.holdMs)
	release.Returned = true
	return append(ops, &jobpb.Op{Kind: &jobpb.Op_Release{Release: release}, Principal: job.SystemPrincipal})
}
