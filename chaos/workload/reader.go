package workload

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"

	"tarry/chaos/history"
)

// reader reads the counts of topics; half of the reads are stale reads.
type reader struct {
	*caller
	config Config
	rand   *rand.Rand
}

func newReader(id int, c Config) client {
	return &reader{caller: newCaller(id, c), config: c, rand: random(c, id)}
}

func (r *reader) run(ctx context.Context) {
	defer r.close()
	for think(ctx, r.config, r.rand, 1) {
		r.count(context.WithoutCancel(ctx), oneOf(r.rand, r.config.topics()), r.rand.IntN(2) == 0)
		if r.rand.IntN(50) == 0 {
			r.move()
		}
	}
}

func (c *caller) count(ctx context.Context, topic string, stale bool) {
	path := "/v1/topics/" + url.PathEscape(topic)
	if stale {
		path += "?consistency=stale"
	}
	op := history.Op{Kind: history.Count, Client: c.id, Topic: topic, Node: c.node(), Invoke: c.rec.Now()}
	a, outcome := c.call(ctx, http.MethodGet, path, nil, c.patience)
	op.Outcome, op.Complete = outcome, c.rec.Now()
	op.Counts = &history.Counts{Stale: stale, Conn: c.conns.Load(), Added: a.Added, Finished: a.Finished.count, Deleted: a.Deleted}
	c.rec.Record(op)
}
