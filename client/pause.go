package client

import (
	"context"
	"net/http"
	"time"
)

// Pause is the state of a topic after a pause or resume. While it is paused its ready jobs
// are not delivered: until Until, or if that is zero until it is resumed.
type Pause struct {
	Topic  string    `json:"topic"`
	Paused bool      `json:"paused"`
	Until  time.Time `json:"paused_until,omitzero"`
}

// Pause pauses a topic for d; 0 means until it is resumed. It replaces a pause that has not
// ended. The topic need not have jobs. A call after an unknown outcome begins a new pause.
func (c Topics) Pause(ctx context.Context, topic string, d time.Duration) (Pause, error) {
	return c.client.pauseOf(ctx, topic, "pause", struct {
		For *Duration `json:"for,omitzero"`
	}{seconds(d)})
}

// PauseUntil is Pause with the time at which it ends.
func (c Topics) PauseUntil(ctx context.Context, topic string, until time.Time) (Pause, error) {
	return c.client.pauseOf(ctx, topic, "pause", struct {
		Until time.Time `json:"until"`
	}{until})
}

// Resume ends a topic's pause, if there is one. It fails with CodeNotFound if the topic does
// not exist.
func (c Topics) Resume(ctx context.Context, topic string) (Pause, error) {
	return c.client.pauseOf(ctx, topic, "resume", nil)
}

func (c *Client) pauseOf(ctx context.Context, topic, verb string, in any) (Pause, error) {
	return ask[Pause](ctx, c, request{method: http.MethodPost, path: "/v1/topics/" + segment(topic) + "/" + verb, in: in, repeat: true})
}
