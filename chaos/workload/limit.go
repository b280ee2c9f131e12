package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// Prepare creates what the load needs on a running cluster: namespaces, limits of topics, their
// targets, and schedules.
func Prepare(ctx context.Context, c Config) error {
	one := newCaller(c.clients(), c)
	defer one.close()
	for prefix, limits := range c.Tenants {
		if err := one.quota(ctx, prefix, limits); err != nil {
			return err
		}
	}
	for topic, limits := range c.Limited {
		if err := one.limit(ctx, topic, limits, settingsOf(limits)); err != nil {
			return err
		}
	}
	for topic, limits := range c.Pushed {
		settings := settingsOf(limits)
		settings["push"] = c.Target.target(topic)
		if err := one.limit(ctx, topic, limits, settings); err != nil {
			return err
		}
	}
	for _, topic := range c.added() {
		for one.index(ctx, topic, []string{groupHeader}) != history.OK {
			if !sleep.For(ctx, retryPause) {
				return errors.Join(fmt.Errorf("no node takes the index of topic %s", topic), ctx.Err())
			}
		}
	}
	for _, p := range c.plans() {
		if err := one.schedule(ctx, c.Scheduled, p); err != nil {
			return err
		}
	}
	return nil
}

// settingsOf returns the settings for limits.
func settingsOf(l history.Limits) map[string]any {
	settings := map[string]any{}
	if l.Pending > 0 {
		settings["max_pending"] = l.Pending
	}
	if l.Reserved > 0 {
		settings["max_reserved"] = l.Reserved
	}
	if l.Rate > 0 {
		settings["rate"], settings["burst"] = l.Rate, l.Burst
	}
	if l.Retain > 0 {
		settings["retain"] = l.Retain
	}
	if l.Expire > 0 {
		settings["expire"], settings["expiry"] = l.Expire.Seconds(), l.Expiry
	}
	if l.RefuseLate {
		settings["late_finish"] = "refuse"
	}
	if l.Tokens {
		settings["require_token"] = true
	}
	if l.Spread > 0 {
		settings["spread"] = l.Spread.Seconds()
	}
	return settings
}

// limit sets the limits of a topic and records that.
func (c *caller) limit(ctx context.Context, topic string, l history.Limits, settings map[string]any) error {
	return c.insist(ctx, http.MethodPut, "/v1/topics/"+url.PathEscape(topic)+"/settings", settings,
		history.Op{Kind: history.Limit, Topic: topic, Limits: &l})
}

// insist repeats a call until it succeeds or ctx ends, and records it.
func (c *caller) insist(ctx context.Context, method, path string, body any, op history.Op) error {
	for {
		a, outcome := c.recorded(ctx, method, path, body, op)
		switch {
		case outcome == history.OK:
			return nil
		case refused(outcome, a):
			return fmt.Errorf("%s %s at %s: %s", method, path, c.node(), a.Error)
		case !sleep.For(ctx, retryPause):
			return errors.Join(fmt.Errorf("%s %s: it failed at every node", method, path), ctx.Err())
		}
	}
}

// newLimitedProducer returns a producer for topics with limits.
func newLimitedProducer(id int, c Config) client { return makeProducer(id, c, c.limited()) }

// pauser pauses a topic with limits from time to time.
type pauser struct {
	*caller
	config Config
	rand   *rand.Rand
}

func newPauser(id int, c Config) client {
	return &pauser{caller: newCaller(id, c), config: c, rand: random(c, id)}
}

// The lengths of pauses, and of the times between them.
const (
	maxPause   = time.Second
	pauseEvery = 3 * time.Second
)

func (p *pauser) run(ctx context.Context) {
	defer p.close()
	for sleep.For(ctx, between(p.rand, pauseEvery)) {
		topic := oneOf(p.rand, p.config.limited())
		length := (maxPause/4 + between(p.rand, maxPause)).Truncate(time.Millisecond)
		path := "/v1/topics/" + url.PathEscape(topic)
		p.recorded(context.WithoutCancel(ctx), http.MethodPost, path+"/pause", map[string]float64{"for": length.Seconds()},
			history.Op{Kind: history.Pause, Topic: topic, Delay: length})
		if p.rand.IntN(3) == 0 && sleep.For(ctx, between(p.rand, maxPause)) {
			p.recorded(context.WithoutCancel(ctx), http.MethodPost, path+"/resume", nil, history.Op{Kind: history.Resume, Topic: topic})
		}
	}
}
