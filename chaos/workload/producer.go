package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tarry/chaos/history"
)

type producer struct {
	*caller
	config Config
	rand   *rand.Rand
	made   int
}

func newProducer(id int, c Config) *producer {
	return &producer{caller: newCaller(id, c), config: c, rand: random(c, id)}
}

// newJob is what a producer asks for.
type newJob struct {
	Topic       string  `json:"topic"`
	ID          string  `json:"id"`
	Delay       float64 `json:"delay"`
	TTR         float64 `json:"ttr"`
	MaxAttempts int     `json:"max_attempts"`
	Body        string  `json:"body"`
}

func (j *newJob) delay() time.Duration {
	return time.Duration(j.Delay * float64(time.Second)).Round(time.Millisecond)
}

func (p *producer) run(ctx context.Context) {
	defer p.close()
	for pause(ctx, between(p.rand, 2*p.config.Think)) {
		switch {
		case p.rand.IntN(10) == 0:
			p.addBatch(ctx)
		default:
			j := p.make()
			if p.add(ctx, j) && j.delay() > maxDelay/2 && p.rand.IntN(3) == 0 {
				p.delete(ctx, j)
			}
		}
	}
}

func (p *producer) make() *newJob {
	p.made++
	id := fmt.Sprintf("%s-p%d-%d", p.config.Name, p.id, p.made)
	j := &newJob{
		Topic: p.config.Topics[p.rand.IntN(len(p.config.Topics))],
		ID:    id,
		TTR:   jobTTR.Seconds(),
		Body:  id + " " + strings.Repeat("x", p.rand.IntN(200)),
	}
	if p.rand.IntN(2) == 0 {
		j.Delay = between(p.rand, maxDelay).Truncate(time.Millisecond).Seconds()
	}
	if p.rand.IntN(5) == 0 {
		j.MaxAttempts = 3
	}
	return j
}

// retryPause lets a cluster breathe between two tries of one call.
const retryPause = 100 * time.Millisecond

// add tries until the job is acknowledged or ctx ends, always with the same id
// and content, at another node after each failure.
func (p *producer) add(ctx context.Context, j *newJob) bool {
	for {
		node, invoke := p.node(), p.rec.Now()
		// Not ctx: a call that was begun gets its answer, so that the end of
		// the load leaves no more unknown outcomes than the faults did.
		a, outcome := p.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/jobs", j, callTimeout)
		p.rec.Record(p.addOp(j, a, outcome, node, invoke))
		if outcome == history.OK {
			return true
		}
		if !pause(ctx, retryPause) {
			return false
		}
	}
}

func (p *producer) addOp(j *newJob, a answer, outcome history.Outcome, node string, invoke int64) history.Op {
	return history.Op{
		Kind: history.Add, Outcome: outcome, Client: p.id, Node: node, Invoke: invoke, Complete: p.rec.Now(),
		ID: j.ID, Topic: j.Topic, Seq: a.Seq, Body: j.Body,
		Delay: j.delay(), TTR: jobTTR, MaxAttempts: j.MaxAttempts,
	}
}

// addBatch adds some jobs in one call; those without an acknowledgement are then
// retried one by one.
func (p *producer) addBatch(ctx context.Context) {
	var request struct {
		Jobs []*newJob `json:"jobs"`
	}
	for range 2 + p.rand.IntN(20) {
		request.Jobs = append(request.Jobs, p.make())
	}
	node, invoke := p.node(), p.rec.Now()
	a, whole := p.call(context.WithoutCancel(ctx), http.MethodPost, "/v1/jobs/batch", &request, callTimeout)
	var again []*newJob
	for i, j := range request.Jobs {
		var item answer
		if i < len(a.Results) {
			item = a.Results[i]
		}
		outcome := itemOutcome(whole, item)
		p.rec.Record(p.addOp(j, item, outcome, node, invoke))
		if outcome != history.OK {
			again = append(again, j)
		}
	}
	for _, j := range again {
		p.add(ctx, j)
	}
}

// delete tries until the job is certainly deleted or gone, or ctx ends.
func (p *producer) delete(ctx context.Context, j *newJob) {
	for {
		node, invoke := p.node(), p.rec.Now()
		a, outcome := p.call(context.WithoutCancel(ctx), http.MethodDelete, "/v1/jobs/"+url.PathEscape(j.ID), nil, callTimeout)
		p.rec.Record(history.Op{
			Kind: history.Delete, Outcome: outcome, Client: p.id, Node: node, Invoke: invoke, Complete: p.rec.Now(),
			ID: j.ID, Topic: j.Topic,
		})
		if outcome == history.OK || a.Code == "not_found" || !pause(ctx, retryPause) {
			return
		}
	}
}
