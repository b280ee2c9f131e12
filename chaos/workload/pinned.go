package workload

import (
	"context"
	"math/rand/v2"
	"time"
)

// pinned reads from one node whatever becomes of it, and only what is the latest.
// It is patient and rarely reads, so of many such readers some always begin a read
// at a node that stands still, and have their answer when it goes on.
type pinned struct {
	*caller
	config Config
	rand   *rand.Rand
}

const (
	// pinnedThink is how many times longer than others a pinned reader thinks.
	pinnedThink = 40
	// pinnedTimeout is longer than nodes stand still.
	pinnedTimeout = 15 * time.Second
)

func newPinned(id int, c Config) client {
	p := &pinned{caller: newCaller(id, c), config: c, rand: random(c, id)}
	p.patience = pinnedTimeout
	p.nodes = func() []Node {
		all := c.Nodes()
		return all[id%len(all):][:1]
	}
	return p
}

func (p *pinned) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, pinnedThink) {
		whole := context.WithoutCancel(ctx)
		if p.rand.IntN(2) == 0 {
			p.count(whole, oneOf(p.rand, p.config.topics()), false)
			continue
		}
		id, topic := p.config.sharedJob(p.rand.IntN(sharedJobs), p.rec.Now())
		p.get(whole, id, id, topic)
	}
}
