package client

import (
	"context"
	"time"
)

// ImportedJob is a job as it was elsewhere. It is also a line of an export (docs/formats.md).
type ImportedJob struct {
	ID    string `json:"id,omitzero"`
	Topic string `json:"topic"`
	// State is dead, or for a job that waits delayed or ready: which of the two depends on
	// DueAt.
	State     State     `json:"state"`
	DueAt     time.Time `json:"due_at"`
	Delay     Duration  `json:"delay,omitzero"` // that gave it DueAt
	CreatedAt time.Time `json:"created_at,omitzero"`
	DiedAt    time.Time `json:"died_at,omitzero"`    // of a dead job; zero means now
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	TTR       Duration  `json:"ttr"`
	Priority  uint32    `json:"priority"`
	// Attempts are those so far: fewer than MaxAttempts, unless the job is dead. A MaxAttempts
	// of 0 is no limit.
	Attempts    uint32            `json:"attempts,omitzero"`
	MaxAttempts uint32            `json:"max_attempts"`
	Reserves    uint32            `json:"reserves,omitzero"`
	Timeouts    uint32            `json:"timeouts,omitzero"`
	Releases    uint32            `json:"releases,omitzero"`
	Buries      uint32            `json:"buries,omitzero"`
	Kicks       uint32            `json:"kicks,omitzero"`
	Reason      string            `json:"reason,omitzero"`
	LastError   string            `json:"last_error,omitzero"`
	Backoff     *Backoff          `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	PushURL     string            `json:"push_url,omitzero"`
	Body
}

// ImportBatch adds jobs as they were elsewhere, up to 1000 in one request, with one result
// each, in order. Existing is set for a job whose id is taken by a job of the same topic with
// the same body, which stays as it is; so the call is safe to repeat if all jobs have ids.
// Errors are as in AddBatch. It needs the verbs add and manage on the topics, and cluster
// version 2.
func (c *Client) ImportBatch(ctx context.Context, jobs []ImportedJob) ([]AddResult, error) {
	repeat := true
	for i := range jobs {
		repeat = repeat && jobs[i].ID != ""
	}
	return inParts(jobs, func(part []ImportedJob) ([]AddResult, error) {
		in := struct {
			Jobs []ImportedJob `json:"jobs"`
		}{part}
		return c.askAdds(ctx, request{path: "/v1/import", in: in, repeat: repeat}, len(part))
	}, func(r *AddResult) *error { return &r.Err })
}
