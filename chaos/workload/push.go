package workload

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"tarry/chaos/history"
)

// pushProducer adds jobs to topics with a target. These jobs are not reserved or kicked by
// others: a post does not identify its reservation, so its attempt does.
type pushProducer struct{ *producer }

func newPushProducer(id int, c Config) client { return pushProducer{makeProducer(id, c, c.pushed())} }

// pushed returns the topics with a target.
func (c Config) pushed() []string { return slices.Sorted(maps.Keys(c.Pushed)) }

func (p pushProducer) run(ctx context.Context) {
	defer p.close()
	for think(ctx, p.config, p.rand, 2) {
		j := p.make()
		if !p.add(ctx, j) || !p.addOld(ctx, j) {
			return
		}
		old := p.old[p.rand.IntN(len(p.old))]
		dice := p.rand.IntN(10)
		if dice == 0 {
			p.delete(ctx, old) // sometimes while it is posted
		}
		if dice < 4 {
			p.get(context.WithoutCancel(ctx), old.ID, old.ID, old.Topic)
		}
	}
}

// headerName is the header that some jobs have.
const headerName = "note"

func (p pushProducer) make() *newJob {
	j := p.producer.make()
	if p.config.Target.refuses(j.ID) {
		j.MaxAttempts = 1 + p.rand.IntN(3)
	}
	if p.rand.IntN(3) > 0 {
		j.Backoff = []float64{0.2, 0.4, 0.8}
	}
	if t := p.config.Target; t.hasOwnURL(j.Topic, j.ID) {
		j.PushURL = t.jobURL(j.ID)
	}
	if p.rand.IntN(3) == 0 {
		j.Headers = map[string]string{headerName: fmt.Sprint("of ", j.ID)}
	}
	return j
}

// target returns the setting of a topic that posts to the target.
func (t *Target) target(topic string) map[string]any {
	return map[string]any{
		"url": t.url(topic), "secret": pushSecret, "timeout": pushTimeout.Seconds(), "concurrency": pushConcurrency,
		"job_urls": topic == OwnURLs,
	}
}

// awaitPosts counts the remaining jobs of a topic. If only dead ones remain it checks some
// of them and deletes them.
func (d *drainer) awaitPosts(ctx context.Context, topic string) (left uint64, err error) {
	path := "/v1/topics/" + url.PathEscape(topic)
	a, err := d.counts(ctx, topic)
	if waiting := a.Delayed + a.Ready + a.Reserved; err != nil || waiting > 0 || a.Dead == 0 {
		return waiting + a.Dead, err
	}
	page, outcome := d.call(ctx, http.MethodGet, path+"/jobs?state=dead", nil, callTimeout)
	if outcome != history.OK {
		return a.Dead, fmt.Errorf("dead jobs of topic %s from %s: %s", topic, d.node(), page.Error)
	}
	for _, j := range page.Jobs {
		d.get(ctx, j.ID, j.ID, topic)
		d.delete(ctx, j.ID, j.ID, topic)
	}
	return a.Dead, nil
}
