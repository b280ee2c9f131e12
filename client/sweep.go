package client

import (
	"context"
	"net/http"
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

// KickTo makes a dead or delayed job ready in another topic.
func (c *Client) KickTo(ctx context.Context, id, topic string) (Changed, error) {
	return c.change(ctx, Ref{ID: id}, "kick", false, struct {
		ToTopic string `json:"to_topic"`
	}{topic})
}

// Move moves a job to another topic. Its state stays.
func (c *Client) Move(ctx context.Context, ref Ref, to string) (Changed, error) {
	return c.change(ctx, ref, "move", true, struct {
		Token string `json:"token,omitzero"`
		To    string `json:"to"`
	}{ref.Token, to})
}
