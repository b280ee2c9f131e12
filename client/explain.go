package client

import (
	"context"
	"time"
)

// Explanation says why a job is not delivered yet, or was delivered late.
type Explanation struct {
	ID    string    `json:"id"`
	Seq   uint64    `json:"seq"`
	Topic string    `json:"topic"`
	State State     `json:"state"`
	DueAt time.Time `json:"due_at"`
	// Late is how long the job has waited since it was due, or until it was delivered.
	Late   Duration `json:"late"`
	Text   string   `json:"text"` // all of it in one line
	Causes []Cause  `json:"causes"`
}

// Cause is one reason why a job is or was not delivered.
type Cause struct {
	Cause string    `json:"cause"`           // such as "rate"; see docs/http-api.md
	Late  Duration  `json:"late,omitzero"`   // its part of the lateness, if that is known
	Until time.Time `json:"until,omitzero"`  // when it ends at the latest, if that is known
	At    time.Time `json:"at,omitzero"`     // when it happened, if it is an event
	Count uint64    `json:"count,omitempty"` // of jobs
	Text  string    `json:"text"`
}

// Explain returns why a job is not delivered yet, or was delivered late.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	if id == "" {
		return Explanation{}, errNoID
	}
	return read[Explanation](ctx, c, jobPath(id, "explain"))
}
