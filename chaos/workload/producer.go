package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// producer adds jobs, one call for each, and deletes, kicks or reads some.
type producer struct {
	*caller
	config Config
	rand   *rand.Rand
	topics []string
	made   int
	old    []*newJob // jobs of topics with retention, to be added again

	finds   bool      // its jobs are in groups, by which it finds them
	grouped []*newJob // those of the present group that were added
}

func makeProducer(id int, c Config, topics []string) *producer {
	return &producer{caller: newCaller(id, c), config: c, rand: random(c, id), topics: topics}
}

func newProducer(id int, c Config) client {
	p := makeProducer(id, c, c.added())
	p.finds = true
	return p
}

// newJob is the body of an add.
type newJob struct {
	Topic       string  `json:"topic"`
	ID          string  `json:"id"`
	Delay       float64 `json:"delay"`
	TTR         float64 `json:"ttr"`
	MaxAttempts int     `json:"max_attempts"`
	Body        string  `json:"body"`

	IfExists   string    `json:"if_exists,omitempty"`
	IfRevision uint64    `json:"if_revision,omitempty"`
	IfState    []string  `json:"if_state,omitempty"`
	Backoff    []float64 `json:"backoff,omitempty"` // seconds; none or three

	Headers map[string]string `json:"headers,omitempty"`
	PushURL string            `json:"push_url,omitempty"`
}

func (j *newJob) delay() time.Duration {
	return time.Duration(j.Delay * float64(time.Second)).Round(time.Millisecond)
}

func (p *producer) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, 1) {
		j := p.make()
		if p.finds {
			p.group(j)
		}
		if !p.add(ctx, j) || !p.addOld(ctx, j) {
			return
		}
		if p.finds {
			p.grouped = append(p.grouped, j)
		}
		switch dice := p.rand.IntN(10); {
		case dice < 2 && j.delay() > maxDelay/2:
			p.delete(ctx, j)
		case dice == 2:
			p.kickJob(context.WithoutCancel(ctx), j.ID, j.ID, j.Topic)
		case dice < 5:
			p.get(context.WithoutCancel(ctx), j.ID, j.ID, j.Topic)
		case dice == 5 && p.finds:
			p.find(context.WithoutCancel(ctx))
		case dice == 6 && p.finds && p.rand.IntN(10) == 0:
			p.reindex(context.WithoutCancel(ctx), j.Topic)
		}
	}
}

// maxOld bounds old.
const maxOld = 32

// addOld adds an older job again in a topic in which that does not make a second one.
func (p *producer) addOld(ctx context.Context, j *newJob) bool {
	if p.config.Limited[j.Topic].Retain+p.config.Pushed[j.Topic].Retain == 0 {
		return true
	}
	if p.old = append(p.old, j); len(p.old) > maxOld {
		p.old = p.old[1:]
	}
	return p.rand.IntN(3) > 0 || p.add(ctx, p.old[p.rand.IntN(len(p.old))])
}

func (p *producer) make() *newJob {
	p.made++
	id := fmt.Sprintf("%s-p%d-%d", p.config.Name, p.id, p.made)
	j := &newJob{
		Topic: oneOf(p.rand, p.topics),
		ID:    id,
		TTR:   jobTTR.Seconds(),
		Body:  bodyOf(p.rand, id),
	}
	if p.rand.IntN(2) == 0 {
		j.Delay = between(p.rand, maxDelay).Truncate(time.Millisecond).Seconds()
	}
	if p.rand.IntN(5) == 0 {
		j.MaxAttempts = 3
	}
	return j
}

// bodyOf returns a body with the name of its job.
func bodyOf(r *rand.Rand, name string) string {
	return name + " " + filling[:r.IntN(len(filling))]
}

var filling = strings.Repeat("x", 200)

func oneOf(r *rand.Rand, topics []string) string { return topics[r.IntN(len(topics))] }

// retryPause is the pause before a call is repeated.
const retryPause = 100 * time.Millisecond

// add repeats the add until it is acknowledged or ctx ends, always with the same id and
// content, on another node after each failure.
func (p *producer) add(ctx context.Context, j *newJob) bool {
	for {
		node, invoke := p.node(), p.rec.Now()
		// The end of ctx does not cancel a call, so that the end of the load causes no
		// unknown outcomes.
		a, outcome := p.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/jobs", j, callTimeout)
		p.rec.Record(p.addOp(j, a, outcome, node, invoke))
		if outcome == history.OK {
			return true
		}
		if !sleep.For(ctx, retryPause) {
			return false
		}
	}
}

func (c *caller) addOp(j *newJob, a answer, outcome history.Outcome, node string, invoke int64) history.Op {
	op := history.Op{
		Kind: history.Add, Outcome: outcome, Code: a.Code, Client: c.id, Node: node, Invoke: invoke, Complete: c.rec.Now(),
		ID: j.ID, Topic: j.Topic, Seq: a.Seq, Body: j.Body,
		Header: j.Headers[headerName], Delay: j.delay(), TTR: seconds(j.TTR), MaxAttempts: j.MaxAttempts,
		IfExists: j.IfExists, IfRevision: j.IfRevision, Revision: a.Revision,
	}
	if len(j.IfState) > 0 {
		op.IfState = j.IfState[0]
	}
	for i, wait := range j.Backoff {
		op.Backoff[i] = seconds(wait)
	}
	if outcome == history.OK {
		op.Result = a.result()
		if !a.DueAt.IsZero() {
			op.Due = a.DueAt.UnixMicro()
		}
	}
	return op
}

// result returns the result of an add.
func (a *answer) result() string {
	switch {
	case a.Replaced:
		return "replaced"
	case a.Postponed:
		return "postponed"
	case a.Existing:
		return "existing"
	default:
		return "created"
	}
}

// delete repeats the delete until the job is certainly deleted or absent, or ctx ends.
func (p *producer) delete(ctx context.Context, j *newJob) {
	for {
		a, outcome := p.caller.delete(context.WithoutCancel(ctx), j.ID, j.ID, j.Topic)
		if outcome == history.OK || a.Code == "not_found" || !sleep.For(ctx, retryPause) {
			return
		}
	}
}
