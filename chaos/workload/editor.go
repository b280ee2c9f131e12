package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// editor changes waiting jobs: it postpones, replaces, updates and cancels them, with
// conditions or without. All editors change the same few jobs, so that their calls conflict.
type editor struct{ *producer }

func newEditor(id int, c Config) client { return editor{makeProducer(id, c, c.Edited)} }

// The jobs that editors share: sharedJobs of them, others after sharedFor.
const (
	sharedJobs = 4
	sharedFor  = 500 * time.Millisecond
)

func (e editor) run(ctx context.Context) {
	defer e.close()
	for think(ctx, e.config, e.rand, 1) {
		e.step(context.WithoutCancel(ctx))
	}
}

// step makes one change. It repeats nothing: another editor changes the job again.
func (e editor) step(ctx context.Context) {
	j := e.shared()
	switch dice := e.rand.IntN(100); {
	case dice < 25:
		e.addOnce(ctx, j)
	case dice < 45:
		e.addOnce(ctx, e.meeting(j))
	case dice < 60:
		e.update(ctx, j, e.condition())
	case dice < 70:
		e.updateTwice(ctx, j)
	case dice < 73:
		e.cancel(ctx, j, e.condition())
	case dice < 78:
		e.get(ctx, j.ID, j.ID, j.Topic)
	case dice < 86:
		e.debounce(ctx)
	case dice < 96:
		e.addWhole(ctx)
	case dice < 99:
		e.moveOne(ctx, j)
	default:
		e.kickTopic(ctx, j.Topic, 1+e.rand.IntN(10))
	}
}

// debounce adds a job that only this editor uses and postpones it a few times.
func (e editor) debounce(ctx context.Context) {
	j := e.make()
	j.IfExists, j.Delay = "postpone", 0.1
	for range 2 + e.rand.IntN(3) {
		e.addOnce(ctx, j)
		j.Delay = (maxDelay/4 + between(e.rand, maxDelay/2)).Truncate(time.Millisecond).Seconds()
	}
}

// shared returns one of the jobs that all editors share now.
func (e editor) shared() *newJob {
	n := e.rand.IntN(sharedJobs)
	j := e.make()
	j.ID, j.Topic = e.config.sharedJob(n, e.rec.Now())
	j.Body = bodyOf(e.rand, j.ID)
	if n == 0 {
		j.Backoff = []float64{0.3, 0.6, 0.9}
	}
	return j
}

// sharedJob returns the id of the nth job that editors share at an instant.
func (c Config) sharedJob(n int, now int64) (id, topic string) {
	return fmt.Sprintf("%s-e%d-%d", c.Name, now/sharedFor.Microseconds(), n), c.Edited[n%len(c.Edited)]
}

// meeting makes an add that changes the existing job with its id.
func (e editor) meeting(j *newJob) *newJob {
	switch e.rand.IntN(6) {
	case 0:
		j.IfExists = "keep"
	case 5:
		j.IfExists = "replace_ended"
	case 1, 2:
		j.IfExists = "replace"
	default:
		j.IfExists = "postpone"
	}
	if j.IfExists == "replace" || j.IfExists == "postpone" {
		c := e.condition()
		j.IfRevision, j.IfState = c.revision, c.states()
	}
	return j
}

func (e editor) addOnce(ctx context.Context, j *newJob) {
	node, invoke := e.node(), e.rec.Now()
	a, outcome := e.call(ctx, http.MethodPost, "/v1/jobs", j, callTimeout)
	e.rec.Record(e.addOp(j, a, outcome, node, invoke))
}

// condition is the condition of a change; the zero value is none.
type condition struct {
	revision uint64
	state    string
}

func (c condition) states() []string {
	if c.state == "" {
		return nil
	}
	return []string{c.state}
}

// condition draws a condition; for most changes none.
func (e editor) condition() condition {
	switch e.rand.IntN(6) {
	case 0:
		return condition{revision: 1 + e.rand.Uint64N(3)}
	case 1:
		return condition{state: []string{"delayed", "ready", "reserved", "dead"}[e.rand.IntN(4)]}
	default:
		return condition{}
	}
}

// change is the body of a PATCH.
type change struct {
	Delay       *float64 `json:"delay,omitempty"`
	DueAt       int64    `json:"due_at,omitempty"` // ms
	Priority    uint32   `json:"priority,omitempty"`
	TTR         float64  `json:"ttr,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"`
	Body        string   `json:"body,omitempty"`
	IfRevision  uint64   `json:"if_revision,omitempty"`
	IfState     []string `json:"if_state,omitempty"`
}

// update changes some fields of a job, at least its priority.
func (e editor) update(ctx context.Context, j *newJob, c condition) (answer, history.Outcome) {
	want := change{Priority: e.rand.Uint32N(2048) + 1, IfRevision: c.revision, IfState: c.states()}
	op := history.Op{Kind: history.Update, ID: j.ID, Topic: j.Topic, IfRevision: c.revision, IfState: c.state, Invoke: e.rec.Now()}
	delay := between(e.rand, maxDelay).Truncate(time.Millisecond)
	switch e.rand.IntN(3) {
	case 0:
		wait := delay.Seconds()
		want.Delay, op.Delay, op.Moves = &wait, delay, true
	case 1:
		want.DueAt = (op.Invoke + delay.Microseconds()) / 1000
		op.Delay, op.Moves = time.Duration(want.DueAt*1000-op.Invoke)*time.Microsecond, true
	}
	if e.rand.IntN(2) == 0 {
		want.Body = bodyOf(e.rand, j.ID)
		op.Body = want.Body
	}
	if e.rand.IntN(4) == 0 {
		want.TTR = 1 + e.rand.Float64()
		op.TTR = seconds(want.TTR)
	}
	if e.rand.IntN(4) == 0 {
		want.MaxAttempts = 2 + e.rand.IntN(3)
		op.MaxAttempts = want.MaxAttempts
	}
	return e.recorded(ctx, http.MethodPatch, "/v1/jobs/"+url.PathEscape(j.ID), want, op)
}

// updateTwice reads a job and changes it twice on condition that it still has the revision
// that was read: the second change must fail.
func (e editor) updateTwice(ctx context.Context, j *newJob) {
	a, outcome := e.get(ctx, j.ID, j.ID, j.Topic)
	if outcome != history.OK || a.Revision == 0 {
		return
	}
	for range 2 {
		e.update(ctx, j, condition{revision: a.Revision})
	}
}

func (e editor) cancel(ctx context.Context, j *newJob, c condition) {
	query := url.Values{}
	if c.revision != 0 {
		query.Set("if_revision", fmt.Sprint(c.revision))
	}
	if c.state != "" {
		query.Set("if_state", c.state)
	}
	path := "/v1/jobs/" + url.PathEscape(j.ID)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	op := history.Op{Kind: history.Delete, ID: j.ID, Topic: j.Topic, IfRevision: c.revision, IfState: c.state}
	e.recorded(ctx, http.MethodDelete, path, nil, op)
}

// maxWhole bounds the jobs of an atomic call.
const maxWhole = 5

// addWhole adds new jobs in one atomic call. Sometimes one of them has an id that another
// job has.
func (e editor) addWhole(ctx context.Context) {
	var batch struct {
		Atomic bool      `json:"atomic"`
		Jobs   []*newJob `json:"jobs"`
	}
	batch.Atomic = true
	for range 2 + e.rand.IntN(maxWhole-1) {
		batch.Jobs = append(batch.Jobs, e.make())
	}
	if e.rand.IntN(4) == 0 {
		batch.Jobs[e.rand.IntN(len(batch.Jobs))] = e.shared()
	}
	e.whole(ctx, "/v1/jobs/batch", &batch, batch.Jobs, nil)
}

// whole makes an atomic call until its outcome is known: it adds jobs and, if there is one,
// finishes another.
func (c *caller) whole(ctx context.Context, path string, body any, jobs []*newJob, done *delivered) {
	c.groups++
	group := uint64(c.id+1)<<32 | c.groups
	for range tries {
		node, invoke := c.node(), c.rec.Now()
		a, outcome := c.call(ctx, http.MethodPost, path, body, callTimeout)
		complete := c.rec.Now()
		if done != nil {
			op := reservationOp(history.Finish, outcome, *done)
			op.Client, op.Node, op.Invoke, op.Complete, op.Code, op.Group = c.id, node, invoke, complete, a.Code, group
			c.rec.Record(op)
		}
		for i, j := range jobs {
			one := answer{Code: a.Code}
			if i < len(a.Results) {
				one = a.Results[i]
			}
			op := c.addOp(j, one, outcome, node, invoke)
			op.Complete, op.Group = complete, group
			c.rec.Record(op)
		}
		if outcome == history.OK || refused(outcome, a) || !sleep.For(ctx, retryPause) {
			return
		}
	}
}

// finishAnd finishes a job and adds others in the same atomic call. A job of editors may be
// added again under its id.
func (c *caller) finishAnd(ctx context.Context, r *rand.Rand, config Config, j delivered) {
	var request struct {
		Token string    `json:"token"`
		Then  []*newJob `json:"then"`
	}
	request.Token = j.Token
	for n := range 1 + r.IntN(2) {
		id := fmt.Sprintf("%s-c%d-%d-%d", config.Name, c.id, c.groups, n)
		request.Then = append(request.Then, &newJob{Topic: j.Topic, ID: id, TTR: jobTTR.Seconds(), Body: bodyOf(r, id)})
	}
	if config.edits(j.Topic) && r.IntN(2) == 0 {
		request.Then = append(request.Then, &newJob{Topic: j.Topic, ID: j.ID, TTR: jobTTR.Seconds(), Delay: 1, Body: bodyOf(r, j.ID)})
	}
	c.whole(ctx, "/v1/jobs/"+url.PathEscape(j.ID)+"/finish", &request, request.Then, &j)
}
