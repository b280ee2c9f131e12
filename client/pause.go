package client

import (
	"context"
	"net/http"
	"time"
)

// Pause is how a topic stands after a pause or resume. While it is paused, its
// ready jobs are not handed out: until Until, and when that is zero until it is
// resumed.
type Pause struct {
	Paused bool      `json:"paused"`
	Until  time.Time `json:"paused_until,omitzero"`
}

// Pause holds a topic's ready jobs back for d; 0 means until it is resumed. It
// replaces a running pause. The topic need not have jobs yet. Called again after
// an unknown outcome it begins a new pause.
func (c *Client) Pause(ctx context.Context, topic string, d time.Duration) (Pause, error) {
	return c.pauseOf(ctx, topic, "pause", struct {
		For *Duration `json:"for,omitzero"`
	}{seconds(d)})
}

// PauseUntil is Pause with the time at which it ends.
func (c *Client) PauseUntil(ctx context.Context, topic string, until time.Time) (Pause, error) {
	return c.pauseOf(ctx, topic, "pause", struct {
		Until time.Time `json:"until"`
	}{until})
}

// Resume ends a topic's pause, if there is one. A topic that does not exist is
// CodeNotFound.
func (c *Client) Resume(ctx context.Context, topic string) (Pause, error) {
	return c.pauseOf(ctx, topic, "resume", nil)
}

func (c *Client) pauseOf(ctx context.Context, topic, verb string, in any) (Pause, error) {
	return ask[Pause](ctx, c, request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/" + verb, in: in, repeat: true})
}
