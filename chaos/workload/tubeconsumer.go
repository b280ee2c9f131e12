package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// tubeConsumer reserves jobs one by one over a connection that it sometimes closes while it
// has reserved jobs.
type tubeConsumer struct {
	*tube
	held  []held // reservations of this connection that have not ended
	lease uint64 // of the last reservation
}

// held is one reservation.
type held struct {
	name, topic string
	seq, lease  uint64
}

func newTubeConsumer(id int, c Config) client { return &tubeConsumer{tube: newTube(id, c)} }

// maxHeld bounds the jobs that one connection keeps.
const maxHeld = 10

func (c *tubeConsumer) run(ctx context.Context) {
	defer c.leave()
	var greeting []string
	for _, topic := range c.config.Tubes {
		greeting = append(greeting, "watch "+topic)
	}
	greeting = append(greeting, "ignore default")
	for ctx.Err() == nil {
		if !c.connect(greeting...) {
			sleep.For(ctx, retryPause)
			continue
		}
		job, ok := c.reserve(ctx)
		if ok {
			c.work(job)
		}
		if c.conn == nil || len(c.held) >= maxHeld || c.rand.IntN(500) == 0 {
			c.leave()
		}
	}
}

// leave closes the connection. The server then releases the connection's jobs, at some time,
// unless their leases have expired.
func (c *tubeConsumer) leave() {
	from := c.lastReply
	c.hangUp()
	for _, h := range c.held {
		c.rec.Record(history.Op{
			Kind: history.Release, Outcome: history.Unknown, Client: c.id, ID: h.name, Topic: h.topic, Seq: h.seq, Lease: h.lease,
			Invoke: from, Complete: c.rec.Now(),
		})
	}
	c.held = nil
}

func (c *tubeConsumer) reserve(ctx context.Context) (held, bool) {
	op := history.Op{Kind: history.Deliver, Topics: strings.Join(c.config.Tubes, " "), Client: c.id, Node: c.node(), Invoke: c.rec.Now()}
	reply, err := c.ask(callTimeout, "reserve-with-timeout 1")
	var text string
	if word, _, _ := strings.Cut(reply, " "); err == nil && word == "RESERVED" {
		var size int
		fields := strings.Fields(reply)
		if size, err = strconv.Atoi(fields[len(fields)-1]); err == nil {
			text, err = c.body(size)
		}
	} else if err == nil && (word == "TIMED_OUT" || word == "DEADLINE_SOON") {
		if word == "DEADLINE_SOON" {
			sleep.For(ctx, retryPause)
			return held{}, false
		}
		op.Kind, op.Complete = history.Reserve, c.rec.Now()
		c.rec.Record(op)
		return held{}, false
	}
	op.Complete, op.Outcome = c.rec.Now(), outcomeOf(reply, err, "RESERVED")
	if op.Outcome != history.OK {
		c.rec.Record(op)
		sleep.For(ctx, retryPause)
		return held{}, false
	}
	c.lease++
	op.Topics = ""
	name, _, _ := strings.Cut(text, " ")
	h := held{name: name, topic: c.topicOf(name), seq: number(reply), lease: uint64(c.id)<<40 | c.lease}
	op.ID, op.Seq, op.Body, op.Lease = h.name, h.seq, text, h.lease
	// The reservation began after the call did.
	op.ReservedUntil = op.Invoke + jobTTR.Microseconds()
	op.TTR = jobTTR
	c.rec.Record(op)
	c.held = append(c.held, h)
	return h, true
}

// topicOf is empty: over beanstalkd a consumer does not learn a job's tube.
func (c *tubeConsumer) topicOf(string) string { return "" }

// work does with a job one of the things that consumers do.
func (c *tubeConsumer) work(h held) {
	switch dice := c.rand.IntN(100); {
	case dice < 80:
		c.endWith(h, history.Delete, "delete %d", "DELETED")
	case dice < 84:
		c.touch(h)
		c.endWith(h, history.Delete, "delete %d", "DELETED")
	case dice < 87:
		delay := c.rand.IntN(2)
		c.release(h, delay)
	case dice < 90:
		c.endWith(h, history.Bury, "bury %d 1024", "BURIED")
		if c.rand.IntN(2) == 0 && c.conn != nil {
			c.record(h, history.Op{Kind: history.Kick}, fmt.Sprintf("kick-job %d", h.seq), "KICKED")
		}
	default:
		// It keeps the job until its lease expires or the connection is closed.
	}
}

func (c *tubeConsumer) endWith(h held, kind history.Kind, command, done string) {
	c.end(h, history.Op{Kind: kind, Lease: h.lease}, fmt.Sprintf(command, h.seq), done)
}

func (c *tubeConsumer) release(h held, delay int) {
	op := history.Op{Kind: history.Release, Lease: h.lease, Delay: time.Duration(delay) * time.Second}
	c.end(h, op, fmt.Sprintf("release %d 1024 %d", h.seq, delay), "RELEASED", "BURIED")
}

func (c *tubeConsumer) touch(h held) {
	c.record(h, history.Op{Kind: history.Touch, Lease: h.lease, TTR: jobTTR}, fmt.Sprintf("touch %d", h.seq), "TOUCHED")
}

// end ends a reservation. After any reply except success the server may still have the
// reservation, and release the job when the connection is closed.
func (c *tubeConsumer) end(h held, op history.Op, command string, done ...string) {
	if c.record(h, op, command, done...) != history.OK {
		return
	}
	for i := range c.held {
		if c.held[i] == h {
			c.held = append(c.held[:i], c.held[i+1:]...)
			return
		}
	}
}

func (c *tubeConsumer) record(h held, op history.Op, command string, done ...string) history.Outcome {
	if c.conn == nil {
		return history.Unknown // the connection's end is recorded by leave
	}
	op.Client, op.Node, op.ID, op.Topic, op.Seq, op.Invoke = c.id, c.node(), h.name, h.topic, h.seq, c.rec.Now()
	reply, err := c.ask(callTimeout, command)
	op.Complete, op.Outcome = c.rec.Now(), outcomeOf(reply, err, done...)
	c.rec.Record(op)
	return op.Outcome
}
