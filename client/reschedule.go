package client

import (
	"context"
	"net/http"
	"time"
)

// RescheduleOptions asks for other due times of the delayed jobs of a topic that are due from
// Filter.DueFrom to Filter.DueTo. Exactly one of Spread and Postpone is set.
type RescheduleOptions struct {
	Sweep
	// Spread spreads the jobs evenly over so much time from Filter.DueFrom on, at least a
	// second. No job becomes due earlier than it is, unless Earlier is set.
	Spread  time.Duration
	Earlier bool
	// Postpone makes each job due later by so much, at least a second.
	Postpone time.Duration
	Cursor   string // Rescheduled.Next of the call before; empty: from the beginning
}

// Rescheduled is the result of Topics.Reschedule.
type Rescheduled struct {
	Count     int // jobs that have another due time now
	Unchanged int // jobs that were already due when they should be
	// Skipped is how many jobs cannot be due then; Reason says why the first was skipped.
	Skipped int
	Reason  string
	// More says that there may be more jobs; Next is where to go on.
	More bool
	Next string
}

// Reschedule spreads or postpones delayed jobs. It changes no job that has changed since the
// server read it. A call may end before it has seen all jobs: repeat it with its Next as
// Cursor. No job is postponed twice, also if a call is repeated because its reply was lost.
func (c Topics) Reschedule(ctx context.Context, topic string, r RescheduleOptions) (Rescheduled, error) {
	in := struct {
		wireSweep
		Spread   Duration `json:"spread,omitzero"`
		Earlier  bool     `json:"earlier,omitzero"`
		Postpone Duration `json:"postpone,omitzero"`
		Cursor   string   `json:"cursor,omitzero"`
	}{r.wire(), Duration{r.Spread}, r.Earlier, Duration{r.Postpone}, r.Cursor}
	var out rescheduleReply
	q := request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/reschedule", in: in, work: sweepTime, repeat: true}
	if _, err := c.client.call(ctx, q, &out); err != nil {
		return Rescheduled{}, err
	}
	return Rescheduled{*out.Rescheduled, out.Unchanged, out.Skipped, out.Reason, out.More, out.Next}, nil
}

type rescheduleReply struct {
	Rescheduled *int   `json:"rescheduled"`
	Unchanged   int    `json:"unchanged"`
	Skipped     int    `json:"skipped"`
	Reason      string `json:"reason"`
	More        bool   `json:"more"`
	Next        string `json:"next"`
}

func (r *rescheduleReply) complete() bool { return r.Rescheduled != nil }
