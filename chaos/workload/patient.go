package workload

import (
	"context"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// patient is a consumer that waits long for the next job, with room for one more, so that a job that wakes
// nobody is seen.
type patient struct {
	*caller
	config Config
}

func newPatient(id int, c Config) client { return &patient{caller: newCaller(id, c), config: c} }

// patience is how long a patient consumer waits for a job.
const patience = 20 * time.Second

func (p *patient) run(ctx context.Context) {
	defer p.close()
	request := reserveRequest{Topics: []string{p.config.Awaited}, Max: 2, Wait: patience.Seconds()}
	for ctx.Err() == nil {
		jobs, outcome := p.reserve(ctx, request, patience+callTimeout)
		p.finish(context.WithoutCancel(ctx), jobs)
		if outcome != history.OK {
			sleep.For(ctx, retryPause)
		}
	}
}

// awaitedThink is the factor of the pause between two jobs for patient consumers.
const awaitedThink = 12

// awaitedProducer adds their jobs.
type awaitedProducer struct{ *producer }

func newAwaitedProducer(id int, c Config) client {
	return awaitedProducer{makeProducer(id, c, []string{c.Awaited})}
}

func (p awaitedProducer) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, awaitedThink) {
		if !p.add(ctx, p.make()) {
			return
		}
	}
}
