package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// consumer reserves a few jobs at a time and does with each what consumers do.
type consumer struct {
	*caller
	config Config
	rand   *rand.Rand
	kept   []delivered // jobs that this consumer keeps until their lease expires
	// together: it may finish jobs with its next reserve. These are done.
	together bool
	done     []delivered
}

func newConsumer(id int, c Config) client {
	return &consumer{caller: newCaller(id, c), config: c, rand: random(c, id), together: true}
}

type reserveRequest struct {
	Topics []string `json:"topics"`
	Max    int      `json:"max"`
	Wait   float64  `json:"wait"`
	Finish []item   `json:"finish,omitempty"`
}

// maxTaken bounds the jobs of one reserve.
const maxTaken = 64

// maxKept bounds the jobs that one slow consumer holds.
const maxKept = 20

func (c *consumer) run(ctx context.Context) {
	defer c.close()
	for ctx.Err() == nil {
		request := reserveRequest{Topics: c.config.consumed(), Max: 1 + c.rand.IntN(maxTaken), Wait: 1}
		patience := callTimeout
		if c.rand.IntN(20) == 0 {
			patience = between(c.rand, time.Second/2) + time.Millisecond // disconnects
		}
		// ctx ends a long poll, as a consumer that stops would.
		var jobs []delivered
		var outcome history.Outcome
		if len(c.done) > 0 {
			jobs, outcome = c.finishAndReserve(ctx, c.done, request, patience)
			c.done = nil
		} else {
			jobs, outcome = c.reserve(ctx, request, patience)
		}
		c.work(context.WithoutCancel(ctx), jobs)
		c.finishLate(context.WithoutCancel(ctx))
		if outcome != history.OK && !sleep.For(ctx, retryPause) {
			break
		}
	}
	c.finish(context.WithoutCancel(ctx), c.done)
}

// reserve records the jobs of a reserve, or that its outcome is unknown.
func (c *caller) reserve(ctx context.Context, request reserveRequest, patience time.Duration) ([]delivered, history.Outcome) {
	node, invoke := c.node(), c.rec.Now()
	a, outcome := c.call(ctx, http.MethodPost, "/v1/reserve", request, patience)
	complete := c.rec.Now()
	if outcome != history.OK {
		c.rec.Record(history.Op{Kind: history.Deliver, Outcome: outcome, Topics: strings.Join(request.Topics, " "), Client: c.id, Node: node, Invoke: invoke, Complete: complete})
	}
	c.brought(a.Jobs, outcome, request, history.Op{Client: c.id, Node: node, Invoke: invoke, Complete: complete})
	return a.Jobs, outcome
}

// brought records what a reserve that began and ended as in call brought.
func (c *caller) brought(jobs []delivered, outcome history.Outcome, request reserveRequest, call history.Op) {
	for _, j := range jobs {
		op := deliverOp(j)
		op.Client, op.Node, op.Invoke, op.Complete = call.Client, call.Node, call.Invoke, call.Complete
		c.rec.Record(op)
	}
	if outcome == history.OK && len(jobs) < request.Max {
		call.Kind, call.Topics, call.Brought = history.Reserve, strings.Join(request.Topics, " "), len(jobs)
		c.rec.Record(call)
	}
}

func deliverOp(j delivered) history.Op {
	return history.Op{
		Kind: history.Deliver, ID: j.name(), Topic: j.Topic, Seq: j.Seq, Body: j.Body,
		Generation: generation(j.Token), Attempts: j.Attempts,
		Due: j.DueAt.UnixMicro(), ReservedUntil: j.ReservedUntil.UnixMicro(),
	}
}

// generation is the last part of a token, "shard-seq-generation": it orders the
// reservations of a job.
func generation(token string) uint64 {
	n, err := strconv.ParseUint(token[strings.LastIndexByte(token, '-')+1:], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("token %q does not end with a generation", token))
	}
	return n
}

// work does with jobs what consumers do: most are finished, in one call.
func (c *consumer) work(ctx context.Context, jobs []delivered) {
	var done []delivered
	for _, j := range jobs {
		switch dice := c.rand.IntN(100); {
		case dice < 80:
			done = append(done, j)
		case dice < 84 && len(c.kept) < maxKept:
			c.kept = append(c.kept, j)
		case dice < 86:
			c.repeat(ctx, history.Touch, j, request{TTR: 2 * jobTTR.Seconds()})
			done = append(done, j)
		case dice < 88:
			c.repeat(ctx, history.Release, j, request{Delay: between(c.rand, maxDelay).Truncate(time.Millisecond).Seconds()})
		case dice < 90:
			// Nearly at once, or after the wait of the job's backoff or the default one.
			c.repeat(ctx, history.Release, j, request{Delay: float64(c.rand.IntN(2)) / 1000})
		case dice < 92:
			c.repeat(ctx, history.Bury, j, request{Reason: oneOf(c.rand, reasons)})
			if c.rand.IntN(2) == 0 {
				c.kickJob(ctx, j.ID, j.name(), j.Topic)
			}
		case dice < 94:
			c.delete(ctx, j.ID, j.name(), j.Topic)
		case dice < 96:
			c.get(ctx, j.ID, j.name(), j.Topic)
			done = append(done, j)
		case dice < 98:
			c.finishAnd(ctx, c.rand, c.config, j)
		case dice < 99 && c.config.Limited[j.Topic].Tokens:
			c.finishUnnamed(ctx, j)
			done = append(done, j)
		default:
			// It does nothing with the job, whose lease will expire.
		}
	}
	switch heads := c.rand.IntN(2) == 0; {
	case heads && c.together:
		c.done = append(c.done, done...)
	case heads && len(done) == 1: // of a stream, mostly
		c.repeat(ctx, history.Finish, done[0], request{})
	default:
		c.finish(ctx, done)
	}
}

// finishUnnamed finishes a job without a token, which its topic does not allow.
func (c *consumer) finishUnnamed(ctx context.Context, j delivered) {
	c.recorded(ctx, http.MethodPost, "/v1/jobs/"+url.PathEscape(j.ID)+"/finish", nil, history.Op{Kind: history.Finish, ID: j.name(), Topic: j.Topic})
}

// finishLate tries the tokens of jobs whose lease has certainly expired. Half of the time
// it first reads whether the reservation has ended.
func (c *consumer) finishLate(ctx context.Context) {
	var kept []delivered
	for _, j := range c.kept {
		if time.Since(j.ReservedUntil) < overrun {
			kept = append(kept, j)
			continue
		}
		if c.rand.IntN(2) == 0 {
			c.get(ctx, j.ID, j.name(), j.Topic)
		}
		c.once(ctx, history.Finish, j, request{})
	}
	c.kept = kept
}

// request is the body of a call on a reserved job.
type request struct {
	Token string  `json:"token"`
	Delay float64 `json:"delay,omitempty"`
	TTR   float64 `json:"ttr,omitempty"`

	Reason string `json:"reason,omitempty"`
}

// reasons are the errors with which consumers bury jobs. None is part of another, or of an
// error of the server.
var reasons = []string{"too heavy", "no address"}

// tries bounds how often a consumer repeats one call, because the lease expires in the
// meantime.
const tries = 4

// repeat repeats a call while its outcome is unknown or it was not applied.
func (c *caller) repeat(ctx context.Context, kind history.Kind, j delivered, r request) {
	for range tries {
		a, outcome := c.once(ctx, kind, j, r)
		if outcome == history.OK || refused(outcome, a) || !sleep.For(ctx, retryPause) {
			return
		}
	}
}

// refused reports whether a call was refused, so that it need not be repeated.
func refused(outcome history.Outcome, a answer) bool {
	return outcome == history.Fail && a.Code != "" && a.Code != "not_applied" && a.Code != "overloaded"
}

// once makes one call with a job's token and records it.
func (c *caller) once(ctx context.Context, kind history.Kind, j delivered, r request) (answer, history.Outcome) {
	r.Token = j.Token
	node, invoke := c.node(), c.rec.Now()
	a, outcome := c.call(ctx, http.MethodPost, "/v1/jobs/"+url.PathEscape(j.ID)+"/"+kind.String(), r, callTimeout)
	op := reservationOp(kind, outcome, j)
	op.Client, op.Node, op.Invoke, op.Complete = c.id, node, invoke, c.rec.Now()
	op.Code, op.Revision = a.Code, a.Revision
	op.Delay, op.TTR, op.Reason = seconds(r.Delay), seconds(r.TTR), r.Reason
	if !a.ReservedUntil.IsZero() {
		op.ReservedUntil = a.ReservedUntil.UnixMicro()
	}
	c.rec.Record(op)
	return a, outcome
}

func reservationOp(kind history.Kind, outcome history.Outcome, j delivered) history.Op {
	return history.Op{Kind: kind, Outcome: outcome, ID: j.name(), Topic: j.Topic, Seq: j.Seq, Generation: generation(j.Token)}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
