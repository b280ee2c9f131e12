package client

import (
	"context"
	"time"
)

// Rates counts what happened to the jobs of a topic, or of all topics, in each step of the
// last 15 minutes, oldest first. The last number of each list is of the step under way. The
// lists are empty if the node that replied has recorded nothing.
type Rates struct {
	Topic     string    `json:"topic,omitzero"`
	Start     time.Time `json:"start"` // of the first step
	Step      Duration  `json:"step"`
	Added     []uint64  `json:"added"`
	Delivered []uint64  `json:"delivered"`
	Finished  []uint64  `json:"finished"`
	Deleted   []uint64  `json:"deleted"`
	Timeouts  []uint64  `json:"timeouts"`
	Died      []uint64  `json:"died"`
	Expired   []uint64  `json:"expired"`
}

// Rates returns the rates of one topic; empty: of all topics together.
func (c Topics) Rates(ctx context.Context, topic string) (Rates, error) {
	if topic == "" {
		return read[Rates](ctx, c.client, "/v1/rates")
	}
	return read[Rates](ctx, c.client, "/v1/topics/"+segment(topic)+"/rates")
}
