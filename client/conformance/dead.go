package main

import (
	"context"

	"tarry/client"
)

type deadArgs struct {
	topicArgs
	Reason string `json:"reason"`
	Max    int    `json:"max"`
}

func dead(ctx context.Context, d *driver, a deadArgs) (any, error) {
	return d.client.Topics().Dead(ctx, a.Topic, a.Max)
}

func deadTopics(ctx context.Context, d *driver, a deadArgs) (any, error) {
	return d.client.Topics().DeadTopics(ctx, a.Reason, a.Max)
}

func kickDead(ctx context.Context, d *driver, a struct {
	deadArgs
	Rate    float64 `json:"rate"`
	ToTopic string  `json:"to_topic"`
}) (any, error) {
	return swept("kicked")(d.client.Topics().KickDead(ctx, a.Reason, client.KickOptions{Sweep: client.Sweep{Max: a.Max}, Rate: a.Rate, ToTopic: a.ToTopic}))
}

func purgeDead(ctx context.Context, d *driver, a deadArgs) (any, error) {
	return swept("deleted")(d.client.Topics().PurgeDead(ctx, a.Reason, a.Max))
}

func reschedule(ctx context.Context, d *driver, a struct {
	sweepArgs
	Spread   client.Duration `json:"spread"`
	Earlier  bool            `json:"earlier"`
	Postpone client.Duration `json:"postpone"`
	Cursor   string          `json:"cursor"`
}) (any, error) {
	r, err := d.client.Topics().Reschedule(ctx, a.Topic, client.RescheduleOptions{
		Sweep: a.sweep(), Spread: a.Spread.Duration, Earlier: a.Earlier, Postpone: a.Postpone.Duration, Cursor: a.Cursor,
	})
	return object{"rescheduled": r.Count, "unchanged": r.Unchanged, "skipped": r.Skipped, "more": r.More, "next": r.Next}, err
}
