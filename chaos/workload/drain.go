package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// Drain ends the schedules, makes the target accept all posts, finishes every job of the
// other topics, including delayed and dead ones, and returns when all counts are zero. If
// ctx ends first the error has the number of remaining jobs. All nodes should be up.
func Drain(ctx context.Context, c Config) error {
	d := &drainer{caller: newCaller(c.clients(), c), topics: c.reserved(), pushed: c.pushed()}
	defer d.close()
	if c.Target != nil {
		c.Target.Calm()
	}
	for _, p := range c.plans() {
		if err := d.unschedule(ctx, c.Scheduled, p); err != nil {
			return err
		}
	}
	for {
		left, err := d.round(ctx)
		if err == nil && left == 0 {
			return nil
		}
		if !sleep.For(ctx, retryPause) {
			return errors.Join(fmt.Errorf("%d jobs remain at the end of the drain", left), err)
		}
	}
}

// AwaitIdle returns when no job of the load is reserved and none will be posted, so that the cluster
// does nothing that clients or the target see. Clients have ended, and the target is calm. All
// nodes should be up.
func AwaitIdle(ctx context.Context, c Config) error {
	d := &drainer{caller: newCaller(c.clients(), c)}
	defer d.close()
	for {
		var busy uint64
		var err error
		for _, topic := range c.topics() {
			a, failed := d.counts(ctx, topic)
			if busy += a.Reserved; slices.Contains(c.pushed(), topic) {
				busy += a.Delayed + a.Ready
			}
			err = errors.Join(err, failed)
		}
		if err == nil && busy == 0 {
			return nil
		}
		if !sleep.For(ctx, retryPause) {
			return errors.Join(fmt.Errorf("%d jobs are still reserved or to be posted", busy), err)
		}
	}
}

type drainer struct {
	*caller
	topics []string
	pushed []string
}

// round kicks, reserves and finishes once, and counts the remaining jobs.
func (d *drainer) round(ctx context.Context) (left uint64, err error) {
	for _, topic := range d.topics {
		d.kickTopic(ctx, topic, 10_000)
	}
	for {
		jobs, outcome := d.reserve(ctx, reserveRequest{Topics: d.topics, Max: 1000}, callTimeout)
		if outcome != history.OK || len(jobs) == 0 {
			break
		}
		d.finish(ctx, jobs)
	}
	for _, topic := range d.topics {
		a, err := d.counts(ctx, topic)
		if err != nil {
			return left, err
		}
		left += a.Delayed + a.Ready + a.Reserved + a.Dead
	}
	for _, topic := range d.pushed {
		n, err := d.awaitPosts(ctx, topic)
		if left += n; err != nil {
			return left, err
		}
	}
	return left, nil
}

func (d *drainer) counts(ctx context.Context, topic string) (answer, error) {
	a, outcome := d.call(ctx, http.MethodGet, "/v1/topics/"+url.PathEscape(topic), nil, callTimeout)
	if outcome != history.OK {
		return a, fmt.Errorf("counts of topic %s from %s: %s", topic, d.node(), a.Error)
	}
	return a, nil
}
