package client

import (
	"context"
	"net/http"
	"time"
)

// sweepTime is about how long a node works on one sweep before it answers that
// there is more.
const sweepTime = 20 * time.Second

// Sweep says which jobs of a topic something is done to.
type Sweep struct {
	Max    int // 1 to 10000 jobs; 0: all of them
	Filter Filter
}

// Swept is what became of it.
type Swept struct {
	Count int
	// More says that the call ended before it had seen all jobs: at Max, because
	// it took too long, or because the cluster could not go on. It can be made
	// again.
	More bool
}

// KickMany says how the dead jobs of a topic are kicked.
type KickMany struct {
	Sweep
	// Rate is in jobs a second, 0.001 to 1,000,000 with up to three decimals: the
	// jobs become due one after the other. 0: all at once.
	Rate    float64
	ToTopic string // where they are then; empty: where they were
}

// wireSweep is a Sweep as the server reads it.
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

// MoveTopic puts all jobs of a topic into another one, or those in the given
// states.
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

// Move puts a job into another topic, in the state in which it is.
func (c *Client) Move(ctx context.Context, ref Ref, to string) (Changed, error) {
	return c.change(ctx, ref, "move", true, struct {
		Token string `json:"token,omitzero"`
		To    string `json:"to"`
	}{ref.Token, to})
}
