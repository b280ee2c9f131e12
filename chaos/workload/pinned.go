package workload

import (
	"context"
	"math/rand/v2"
	"time"
)

// pinned makes linearizable reads on one node, whatever happens to that node. It has a long
// timeout and reads rarely, so of many such readers some always begin a read on a suspended
// node, and get the reply when it resumes.
type pinned struct {
	*caller
	config Config
	rand   *rand.Rand
}

const (
	// pinnedThink is how many times longer the pauses of a pinned reader are.
	pinnedThink = 40
	// pinnedTimeout is longer than nodes are suspended.
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
