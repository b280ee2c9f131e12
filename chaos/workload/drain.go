package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"tarry/chaos/history"
)

// Drain ends the schedules and finishes every job of the topics, the delayed and dead ones included,
// and returns when all counts are zero. When ctx ends first it fails with what
// is left. All nodes should be up.
func Drain(ctx context.Context, c Config) error {
	d := &drainer{caller: newCaller(c.clients(), c), topics: c.topics()}
	defer d.close()
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
		if !pause(ctx, retryPause) {
			return errors.Join(fmt.Errorf("%d jobs are left at the end of the drain", left), err)
		}
	}
}

type drainer struct {
	*caller
	topics []string
}

// round kicks, reserves and finishes once, and counts what is left.
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
		a, outcome := d.call(ctx, http.MethodGet, "/v1/topics/"+url.PathEscape(topic), nil, callTimeout)
		if outcome != history.OK {
			return left, fmt.Errorf("counts of topic %s from %s: %s", topic, d.node(), a.Error)
		}
		left += a.Delayed + a.Ready + a.Reserved + a.Dead
	}
	return left, nil
}
