package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"tarry/chaos/history"
)

// producer adds jobs, one call for each, and deletes, kicks or reads some.
type producer struct {
	*caller
	config Config
	rand   *rand.Rand
	topics []string
	made   int
}

func makeProducer(id int, c Config, topics []string) *producer {
	return &producer{caller: newCaller(id, c), config: c, rand: random(c, id), topics: topics}
}

func newProducer(id int, c Config) client { return makeProducer(id, c, c.topics()) }

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
	for think(ctx, p.config, p.rand, 1) {
		j := p.make()
		if !p.add(ctx, j) {
			return
		}
		switch dice := p.rand.IntN(10); {
		case dice < 2 && j.delay() > maxDelay/2:
			p.delete(ctx, j)
		case dice == 2:
			p.kickJob(context.WithoutCancel(ctx), j.ID, j.ID, j.Topic)
		case dice < 5:
			p.get(context.WithoutCancel(ctx), j.ID, j.ID, j.Topic)
		}
	}
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

// bodyOf is a body that names its job.
func bodyOf(r *rand.Rand, name string) string {
	return name + " " + filling[:r.IntN(len(filling))]
}

var filling = strings.Repeat("x", 200)

func oneOf(r *rand.Rand, topics []string) string { return topics[r.IntN(len(topics))] }

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

// delete tries until the job is certainly deleted or gone, or ctx ends.
func (p *producer) delete(ctx context.Context, j *newJob) {
	for {
		a, outcome := p.caller.delete(context.WithoutCancel(ctx), j.ID, j.ID, j.Topic)
		if outcome == history.OK || a.Code == "not_found" || !pause(ctx, retryPause) {
			return
		}
	}
}
