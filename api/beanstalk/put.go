package beanstalk

import (
	"errors"
	"strconv"
	"time"

	"tarry/api/httpx"
	"tarry/job"
	"tarry/job/jobpb"
)

// Bounds of one run of puts.
const (
	maxRun      = 256
	maxRunBytes = 192 << 10
)

// run is a sequence of puts that a client has sent without waiting for replies. They
// are proposed together, and the replies come in their order.
type run struct {
	ops   []*jobpb.Op
	bytes int // of bodies
}

// claim reserves size bytes for a body until unclaim. It returns false, and reserves
// nothing, when there is no room.
func (c *conn) claim(size int) bool {
	if !c.share.TryAcquire(int64(size)) {
		return false
	}
	c.claimed += int64(size)
	return true
}

func (c *conn) unclaim(size int64) {
	c.share.Release(size)
	c.claimed -= size
}

func (c *conn) put(cmd command) error {
	size := int(cmd.n)
	if size > c.server.MaxJobSize {
		return c.refusePut(size, jobTooBig)
	}
	if cmd.trailing {
		c.say(badFormat)
		return nil
	}
	if !c.producer {
		c.producer = true
		c.server.counts.producers.Add(1)
	}
	if err := c.await(int64(size) + 2); err != nil {
		return err
	}
	before := c.claimed
	body, ok, err := c.in.body(size, c.claim)
	switch {
	case errors.Is(err, errNoRoom):
		c.unclaim(c.claimed - before)
		return c.refusePut(size-len(body), outOfMemory)
	case err != nil:
		c.server.Access.GiveBack(c.who.principal.TokenID(), int64(max(0, size-len(body)))) // it was counted when it was announced
		return err
	}
	c.arrived()
	c.unclaim(c.claimed - before - int64(size)) // the CRLF
	switch {
	case !ok:
		c.unclaim(int64(size))
		c.say(expectedCRLF)
	case c.server.Draining():
		c.unclaim(int64(size))
		c.say(draining)
	default:
		c.add(cmd, body)
	}
	return c.flushFull()
}

// refusePut drops a body that is refused and replies.
func (c *conn) refusePut(size int, word string) error {
	if err := c.dropBody(size); err != nil {
		return err
	}
	c.say(word)
	return nil
}

// dropBody reads a body, and forgets it.
func (c *conn) dropBody(size int) error {
	c.commit()
	if err := c.await(int64(size) + 2); err != nil {
		return err
	}
	if err := c.in.skip(int64(size) + 2); err != nil {
		return err
	}
	c.arrived()
	return nil
}

// await sends what was collected before it waits for a body, and sets the deadline for
// the body. The deadline lasts until arrived.
func (c *conn) await(size int64) error {
	if int64(len(c.in.data())) >= size {
		return nil
	}
	c.commit()
	c.awaits = true
	c.setReadDeadline(time.Now().Add(httpx.ReadTime(size)))
	return c.flush()
}

func (c *conn) arrived() {
	if c.awaits {
		c.awaits = false
		c.setReadDeadline(time.Time{})
	}
}

// setReadDeadline keeps the deadline by which Shutdown and cut end reading: they cancel
// the server's context, or set ended, before they set that deadline.
func (c *conn) setReadDeadline(t time.Time) {
	c.net.SetReadDeadline(t)
	if c.server.ctx.Err() != nil || c.ended.Load() {
		c.net.SetReadDeadline(longAgo)
	}
}

func (c *conn) add(cmd command, body []byte) {
	c.run.ops = append(c.run.ops, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{
		Topic: c.used, Body: body, Priority: cmd.pri,
		DelayMs: delayMillis(cmd.seconds), TtrMs: ttrMillis(cmd.ttr), TopicAttempts: true,
	}}})
	if c.run.bytes += len(body); len(c.run.ops) == maxRun || c.run.bytes >= maxRunBytes {
		c.commit()
	}
}

// commit proposes the run and replies to its puts.
func (c *conn) commit() {
	ops := c.run.ops
	if len(ops) == 0 {
		return
	}
	defer c.unclaim(int64(c.run.bytes))
	c.run = run{}
	results, err := c.server.Queue.Do(c.ctx, ops)
	for i := range ops {
		switch {
		case err != nil && c.server.Draining() && job.CodeOf(err) == job.CodeNotApplied:
			c.say(draining)
		case err != nil:
			c.fail(err)
		case results[i].Code != jobpb.Code_OK:
			c.fail(job.ResultError(results[i]))
		default:
			c.out = append(c.out, "INSERTED "...)
			c.out = strconv.AppendUint(c.out, results[i].Seq, 10)
			c.out = append(c.out, "\r\n"...)
		}
	}
}

// delayMillis converts a delay to milliseconds, at most the queue's maximum of over 31
// years.
func delayMillis(seconds uint32) int64 {
	return min(time.Duration(seconds)*time.Second, job.MaxDelay).Milliseconds()
}

// ttrMillis returns at least a second, as in beanstalkd, and at most the queue's maximum.
func ttrMillis(seconds uint32) int64 {
	return min(time.Duration(max(seconds, 1))*time.Second, job.MaxTTR).Milliseconds()
}
