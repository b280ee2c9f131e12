package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// sweepTime is about how long a node works on one sweep before it responds that there are
// more jobs.
const sweepTime = 20 * time.Second

// Sweep selects the jobs of a topic for an operation on all of them.
type Sweep struct {
	Max    int // 1 to 10000 jobs; 0: all of them
	Filter Filter
}

// Swept is the result of a sweep.
type Swept struct {
	Count int
	// More is set if the call ended before it had processed all jobs: at Max, because it took
	// too long, or because of a failure. It can be repeated.
	More bool
}

// KickOptions has the options for kicking the dead jobs of a topic.
type KickOptions struct {
	Sweep
	// Rate makes the jobs due one after the other, in jobs per second, 0.001 to 1,000,000
	// with up to three decimals. 0: all at once.
	Rate    float64
	ToTopic string // the topic to move them to; empty: they stay
}

// wireSweep is a Sweep in its JSON form.
type wireSweep struct {
	Max    int     `json:"max,omitzero"`
	All    bool    `json:"all,omitzero"`
	Filter *Filter `json:"filter,omitzero"`
}

func (s *Sweep) wire() wireSweep { return wireSweep{Max: s.Max, All: s.Max == 0, Filter: &s.Filter} }

// Kick makes dead jobs of a topic ready, the longest dead first.
func (c Topics) Kick(ctx context.Context, topic string, k KickOptions) (Swept, error) {
	return c.client.sweep(ctx, topic, "kick", struct {
		wireSweep
		Rate    float64 `json:"rate,omitzero"`
		ToTopic string  `json:"to_topic,omitzero"`
	}{k.wire(), k.Rate, k.ToTopic})
}

// Release gives back reserved jobs of a topic whose consumer is gone; an empty consumer
// is any. The attempt of each counts.
func (c Topics) Release(ctx context.Context, topic, consumer, reason string, s Sweep) (Swept, error) {
	return c.client.sweep(ctx, topic, "release", struct {
		wireSweep
		Consumer string `json:"consumer,omitzero"`
		Reason   string `json:"reason,omitzero"`
	}{s.wire(), consumer, reason})
}

// Drop drops a topic that has no jobs, also no retained ones, with its totals and its pause, and
// deletes its dead jobs before. Otherwise it goes after an hour without jobs.
func (c Topics) Drop(ctx context.Context, topic string) (Swept, error) {
	return c.client.sweep(ctx, topic, "purge", struct {
		wireSweep
		State     string `json:"state"`
		DropEmpty bool   `json:"drop_empty"`
	}{(&Sweep{}).wire(), "dead", true})
}

// Purge deletes jobs of a topic in a state: dead, delayed or ready.
func (c Topics) Purge(ctx context.Context, topic string, state State, s Sweep) (Swept, error) {
	return c.client.sweep(ctx, topic, "purge", struct {
		wireSweep
		State State `json:"state"`
	}{s.wire(), state})
}

// MoveAll moves all jobs of a topic, or those in the given states, to another one.
func (c Topics) MoveAll(ctx context.Context, topic, to string, states ...State) (Swept, error) {
	return c.client.sweep(ctx, topic, "move", struct {
		To     string  `json:"to"`
		States []State `json:"states,omitempty"`
	}{to, states})
}

// MoveOptions has the options for moving jobs of a topic that match a filter.
type MoveOptions struct {
	Sweep
	To     string  // the topic to move them to
	States []State // empty: all
	Cursor string  // Moved.Next of the call before; empty: from the first job on
}

// Moved is the result of Topics.Move.
type Moved struct {
	Count int
	// Skipped is how many jobs cannot be in that topic; Reason says why the first was skipped.
	Skipped int
	Reason  string
	// More says that the call ended before it had seen all jobs; Next is where to go on.
	More bool
	Next string
}

// Move moves jobs of a topic that match a filter to another one, or up to so many. A job
// that changes between the server's read of it and its move is moved all the same.
func (c Topics) Move(ctx context.Context, topic string, m MoveOptions) (Moved, error) {
	in := struct {
		wireSweep
		To     string  `json:"to"`
		States []State `json:"states,omitempty"`
		Cursor string  `json:"cursor,omitzero"`
	}{m.wire(), m.To, m.States, m.Cursor}
	var out moveReply
	q := request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/move", in: in, work: sweepTime}
	if _, err := c.client.call(ctx, q, &out); err != nil {
		return Moved{}, err
	}
	return Moved{*out.Moved, out.Skipped, out.Reason, out.More, out.Next}, nil
}

type moveReply struct {
	Moved   *int   `json:"moved"`
	Skipped int    `json:"skipped"`
	Reason  string `json:"reason"`
	More    bool   `json:"more"`
	Next    string `json:"next"`
}

func (r *moveReply) complete() bool { return r.Moved != nil }

func (c *Client) sweep(ctx context.Context, topic, verb string, in any) (Swept, error) {
	var out sweepReply
	q := request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/" + verb, in: in, work: sweepTime}
	_, err := c.call(ctx, q, &out)
	return Swept{out.count(), out.More}, err
}

// DeadReasons are the dead jobs of a topic, or of all topics, grouped by reason: by their
// reason, or else their last error, cut to 200 bytes.
type DeadReasons struct {
	Topic   string       `json:"topic,omitzero"`
	Jobs    uint64       `json:"jobs"`             // all dead jobs
	Reasons uint64       `json:"reasons,omitzero"` // how many reasons they have; only of all topics
	Groups  []DeadReason `json:"groups"`           // the largest first
	More    bool         `json:"more,omitzero"`    // there are more groups
	// Incomplete is set if a group that is missing may have more jobs than the last one
	// listed, but less than twice as many.
	Incomplete bool `json:"incomplete,omitzero"`
}

// DeadTopics are the dead jobs with one reason, grouped by topic.
type DeadTopics struct {
	Reason     string      `json:"reason"`
	Jobs       uint64      `json:"jobs"`          // all of them
	Topics     uint64      `json:"topics"`        // how many topics they are in
	Groups     []DeadTopic `json:"groups"`        // the largest first
	More       bool        `json:"more,omitzero"` // there are more topics
	Incomplete bool        `json:"incomplete,omitzero"`
}

// DeadReason is the dead jobs with one reason, of one topic or of all.
type DeadReason struct {
	Reason string `json:"reason"` // empty: none was given
	Jobs   uint64 `json:"jobs"`
	Topics uint64 `json:"topics,omitzero"` // how many topics they are in; only of all topics
	// Example is the id of one of the jobs: of a topic the one that died first, at
	// FirstDiedAt.
	Example     string    `json:"example"`
	FirstDiedAt time.Time `json:"first_died_at,omitzero"`
}

// DeadTopic is the dead jobs of a topic with one reason.
type DeadTopic struct {
	Topic       string    `json:"topic"`
	Jobs        uint64    `json:"jobs"`
	Example     string    `json:"example"` // the id of the job that died first
	FirstDiedAt time.Time `json:"first_died_at"`
}

// Dead returns the reasons that most dead jobs of a topic have, up to limit of them (at most
// 1000; 0 means 100). An empty topic means all topics together.
func (c Topics) Dead(ctx context.Context, topic string, limit int) (DeadReasons, error) {
	path := "/v1/dead"
	if topic != "" {
		path = "/v1/topics/" + segment(topic) + "/dead"
	}
	query := url.Values{}
	if limit != 0 {
		query.Set("max", strconv.Itoa(limit))
	}
	return read[DeadReasons](ctx, c.client, withQuery(path, query))
}

// DeadTopics returns the topics that most dead jobs with a reason are in, up to limit of them
// (at most 1000; 0 means 100). The reason is that of a group of Dead; it may be empty.
func (c Topics) DeadTopics(ctx context.Context, reason string, limit int) (DeadTopics, error) {
	query := url.Values{"exact_reason": {reason}}
	if limit != 0 {
		query.Set("max", strconv.Itoa(limit))
	}
	return read[DeadTopics](ctx, c.client, withQuery("/v1/dead/topics", query))
}

// KickDead makes the dead jobs of all topics ready that have a reason, which is that of a
// group of Dead. Of k it takes all but the filter. For those of one topic use Kick with
// a filter that has ExactReason.
func (c Topics) KickDead(ctx context.Context, reason string, k KickOptions) (Swept, error) {
	return c.client.sweepDead(ctx, "kick", struct {
		wireDead
		Rate    float64 `json:"rate,omitzero"`
		ToTopic string  `json:"to_topic,omitzero"`
	}{wireDead{reason, k.Max, k.Max == 0}, k.Rate, k.ToTopic})
}

// PurgeDead deletes up to limit dead jobs of all topics that have a reason; 0 means all.
func (c Topics) PurgeDead(ctx context.Context, reason string, limit int) (Swept, error) {
	return c.client.sweepDead(ctx, "purge", wireDead{reason, limit, limit == 0})
}

// wireDead selects dead jobs in JSON.
type wireDead struct {
	Reason string `json:"exact_reason"`
	Max    int    `json:"max,omitzero"`
	All    bool   `json:"all,omitzero"`
}

func (c *Client) sweepDead(ctx context.Context, verb string, in any) (Swept, error) {
	var out sweepReply
	_, err := c.call(ctx, request{method: http.MethodPost, path: "/v1/dead/" + verb, in: in, work: sweepTime}, &out)
	return Swept{out.count(), out.More}, err
}

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
