package beanstalk

import (
	"fmt"
	"strconv"
	"time"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// delete removes a job that this connection has reserved or nobody has.
func (c *conn) delete(id uint64) {
	if id == 0 {
		c.say(notFound)
		return
	}
	ref, held := c.held.ref(id)
	var r *jobpb.Result
	if hold, expected := c.expectsReserve(); held && expected {
		r = c.deleteAndReserve(ref, hold)
	} else {
		r = c.do(deletion(ref))
	}
	c.ahead.deleted, c.ahead.until = held, time.Time{}
	if r != nil && held && r.Code == jobpb.Code_STALE_TOKEN {
		// The reservation has expired; the job may be ready again.
		c.held.drop(id)
		r = c.deleteAgain(id)
	}
	c.replyEnd(id, r, "DELETED")
}

func deletion(ref *jobpb.Ref) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref, SpareReserved: true}}}
}

// replyEnd replies to a command that ends a reservation. Without a result the outcome
// is unknown, and the reservation is kept.
func (c *conn) replyEnd(id uint64, r *jobpb.Result, word string) {
	if r == nil {
		return
	}
	if !denied(r) {
		c.held.drop(id)
	}
	if r.Code != jobpb.Code_OK {
		c.failed(r)
		return
	}
	c.say(word)
}

// release releases a job. One that has used up its attempts is buried instead, and
// the reply is BURIED.
func (c *conn) release(cmd command) {
	ref, held := c.held.ref(cmd.id)
	if !held {
		c.say(notFound)
		return
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{
		Ref: ref, DelayMs: delayMillis(cmd.seconds), SetPriority: true, Priority: cmd.pri,
	}}})
	word := "RELEASED"
	if r != nil && r.State == jobpb.State_STATE_DEAD {
		word = buried
	}
	c.replyEnd(cmd.id, r, word)
}

func (c *conn) bury(cmd command) {
	ref, held := c.held.ref(cmd.id)
	if !held {
		c.say(notFound)
		return
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: ref, SetPriority: true, Priority: cmd.pri}}})
	c.replyEnd(cmd.id, r, buried)
}

func (c *conn) touch(id uint64) {
	ref, held := c.held.ref(id)
	if !held {
		c.say(notFound)
		return
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: ref}}})
	switch {
	case r == nil:
	case r.Code == jobpb.Code_OK:
		c.held.add(id, ref.Generation, c.held.jobs[id].ttr)
		c.say("TOUCHED")
	default:
		if !denied(r) {
			c.held.drop(id)
		}
		c.failed(r)
	}
}

func (c *conn) kickJob(id uint64) {
	if id == 0 {
		c.say(notFound)
		return
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: &jobpb.Ref{Seq: id}}}})
	switch {
	case r == nil:
	case r.Code == jobpb.Code_OK:
		c.say("KICKED")
	default:
		c.failed(r)
	}
}

// kick makes up to n buried jobs of the used tube ready or, when it has none,
// delayed ones. More jobs than the queue kicks at once take several steps; which kind
// of jobs to kick is decided once.
func (c *conn) kick(n uint32) {
	if n <= job.MaxKick {
		if kicked, ok := c.kickSome(n, true); ok {
			c.say("KICKED " + strconv.FormatUint(uint64(kicked), 10))
		}
		return
	}
	total, ok := c.kickMany(n, false)
	if ok && total == 0 {
		total, ok = c.kickMany(n, true)
	}
	if ok {
		c.say("KICKED " + strconv.FormatUint(uint64(total), 10))
	}
}

func (c *conn) kickMany(n uint32, orDelayed bool) (total uint32, ok bool) {
	for total < n {
		step := min(n-total, job.MaxKick)
		kicked, ok := c.kickSome(step, orDelayed)
		if !ok {
			return 0, false
		}
		if total += kicked; kicked < step {
			break
		}
	}
	return total, true
}

// kickSome returns false when it has replied with a failure.
func (c *conn) kickSome(n uint32, orDelayed bool) (kicked uint32, ok bool) {
	if n == 0 {
		return 0, true
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: c.used, Max: n, OrDelayed: orDelayed}}})
	if r == nil {
		return 0, false
	}
	if err := job.ResultError(r); err != nil {
		c.fail(err)
		return 0, false
	}
	return r.Count, true
}

// pauseTube pauses a tube, or resumes it when seconds is 0. A tube without jobs
// can be paused while a connection of this node names it.
func (c *conn) pauseTube(tube string, seconds uint32) {
	_, named := c.server.tubes.of(tube)
	if !named {
		// Who may pause it may learn whether it exists.
		t, err := c.server.reads.Topic(auth.NewContext(c.base, auth.System()), tube, false)
		if err != nil {
			c.fail(err)
			return
		}
		if !alive(t) {
			c.say(notFound)
			return
		}
	}
	r := c.do(&jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{
		Topic: tube, PauseMs: (time.Duration(seconds) * time.Second).Milliseconds(), Create: named,
	}}})
	c.server.Logger.Info("management call", "call", fmt.Sprintf("pause-tube %s %d", tube, seconds),
		"from", c.net.RemoteAddr().String(), "paused", r != nil && job.ResultError(r) == nil)
	if r == nil {
		return
	}
	if err := job.ResultError(r); err != nil {
		c.fail(err)
		return
	}
	c.say("PAUSED")
}
