package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// The schedules of the load have a run every runEvery. A run that could not be started is
// missed after missedAfter seconds.
const (
	runEvery    = time.Second
	missedAfter = 1
	runJitter   = 800 * time.Millisecond
)

// plans returns the schedules of the load: one for each policy for missed runs, one whose
// runs must not overlap, and one with jitter.
func (c Config) plans() []history.Plan {
	var plans []history.Plan
	if c.Scheduled == "" {
		return nil
	}
	for _, missed := range []string{"skip", "one", "all"} {
		plans = append(plans, history.Plan{Name: c.Name + "-every-second-" + missed, Every: runEvery, Missed: missed})
	}
	return append(plans,
		history.Plan{Name: c.Name + "-alone", Every: runEvery, Missed: "skip", Alone: true},
		history.Plan{Name: c.Name + "-jitter", Every: runEvery, Missed: "skip", Jitter: runJitter})
}

func schedulePath(p history.Plan) string { return "/v1/schedules/" + url.PathEscape(p.Name) }

// schedule creates a schedule whose runs add jobs to a topic.
func (c *caller) schedule(ctx context.Context, topic string, p history.Plan) error {
	type plannedJob struct {
		Topic       string  `json:"topic"`
		TTR         float64 `json:"ttr"`
		MaxAttempts int     `json:"max_attempts"`
		Body        string  `json:"body"`
	}
	request := map[string]any{
		"spec": fmt.Sprintf("@every %v", p.Every), "missed": p.Missed, "missed_after": missedAfter,
		"job": plannedJob{Topic: topic, TTR: jobTTR.Seconds(), Body: p.Name},
	}
	if p.Alone {
		request["overlap"] = "skip"
		delete(request, "missed_after") // late rather than missed, so that each run is started or skipped
	}
	if p.Jitter > 0 {
		request["jitter"] = p.Jitter.Seconds()
	}
	if p.Missed == "all" {
		request["missed_max"] = 1000
	}
	return c.insist(ctx, http.MethodPut, schedulePath(p), request, history.Op{Kind: history.Schedule, Topic: topic, TTR: jobTTR, Plan: &p})
}

// unschedule ends a schedule and records its counts.
func (c *caller) unschedule(ctx context.Context, topic string, p history.Plan) error {
	op := history.Op{Kind: history.Unschedule, Topic: topic, Client: c.id, Invoke: c.rec.Now()}
	for {
		_, outcome := c.call(ctx, http.MethodPost, schedulePath(p)+"/pause", nil, callTimeout)
		if outcome == history.OK {
			var a answer
			if a, outcome = c.call(ctx, http.MethodGet, schedulePath(p), nil, callTimeout); outcome == history.OK {
				p.Started, p.Skipped, p.Lost, p.Refused = a.Counts.Started, a.Counts.Skipped, a.Counts.Missed, a.Counts.Refused
				op.Node, op.Complete, op.Plan = c.node(), c.rec.Now(), &p
				c.rec.Record(op)
				return nil
			}
		}
		if !sleep.For(ctx, retryPause) {
			return fmt.Errorf("pause schedule %s: %w", p.Name, ctx.Err())
		}
	}
}
