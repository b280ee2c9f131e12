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

// KickMany has the options for kicking the dead jobs of a topic.
type KickMany struct {
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

// KickMany makes dead jobs of a topic ready, the longest dead first.
func (c *Client) KickMany(ctx context.Context, topic string, k KickMany) (Swept, error) {
	return c.sweep(ctx, topic, "kick", struct {
		wireSweep
		Rate    float64 `json:"rate,omitzero"`
		ToTopic string  `json:"to_topic,omitzero"`
	}{k.wire(), k.Rate, k.ToTopic})
}

// ReleaseMany gives back reserved jobs of a topic whose consumer is gone; an empty consumer
// is any. The attempt of each counts.
func (c *Client) ReleaseMany(ctx context.Context, topic, consumer, reason string, s Sweep) (Swept, error) {
	return c.sweep(ctx, topic, "release", struct {
		wireSweep
		Consumer string `json:"consumer,omitzero"`
		Reason   string `json:"reason,omitzero"`
	}{s.wire(), consumer, reason})
}

// Purge deletes jobs of a topic in a state: "dead", "delayed" or "ready".
func (c *Client) Purge(ctx context.Context, topic, state string, s Sweep) (Swept, error) {
	return c.sweep(ctx, topic, "purge", struct {
		wireSweep
		State string `json:"state"`
	}{s.wire(), state})
}

// MoveTopic moves all jobs of a topic, or those in the given states, to another one.
func (c *Client) MoveTopic(ctx context.Context, topic, to string, states ...string) (Swept, error) {
	return c.sweep(ctx, topic, "move", struct {
		To     string   `json:"to"`
		States []string `json:"states,omitempty"`
	}{to, states})
}

func (c *Client) sweep(ctx context.Context, topic, verb string, in any) (Swept, error) {
	var out struct {
		Kicked   int  `json:"kicked"`
		Deleted  int  `json:"deleted"`
		Moved    int  `json:"moved"`
		Released int  `json:"released"`
		More     bool `json:"more"`
	}
	q := request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/" + verb, in: in, wait: sweepTime}
	_, err := c.call(ctx, q, &out)
	return Swept{out.Kicked + out.Deleted + out.Moved + out.Released, out.More}, err
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
