package client

import (
	"context"
	"net/http"
	"time"
)

// Clocks compares the clocks of the nodes, as the leader sees them.
type Clocks struct {
	MaxOffset float64 `json:"max_offset"` // seconds that a clock may be off the majority's for its node to lead
	// Agreed is set if a majority of the voters' clocks agrees with Majority within
	// MaxOffset. Otherwise Majority is the lower median of the clocks of the nodes that
	// replied; nil: too few replied.
	Agreed   bool       `json:"agreed"`
	Majority *time.Time `json:"majority,omitempty"`
	// ClusterAhead is how many seconds the queue's clock is ahead of Majority.
	ClusterAhead float64     `json:"cluster_ahead"`
	Clocks       []NodeClock `json:"clocks"`
}

// NodeClock is one node's clock.
type NodeClock struct {
	ID       string  `json:"id"`
	Voter    bool    `json:"voter"`
	Answered bool    `json:"answered"`
	Offset   float64 `json:"offset"` // seconds ahead of the majority's
	Within   float64 `json:"within"` // the error of Offset, in seconds
	Off      bool    `json:"off"`    // by more than MaxOffset: the node does not lead
}

// Clocks asks all nodes for the time.
func (c Cluster) Clocks(ctx context.Context) (Clocks, error) {
	return read[Clocks](ctx, c.client, "/v1/cluster/clock")
}

// ResetClock sets the queue's clock back to the clock of the majority of the nodes. It fails
// unless the queue's clock is ahead by more than MaxOffset.
func (c Cluster) ResetClock(ctx context.Context) error {
	return c.client.operate(ctx, request{method: http.MethodPost, path: "/v1/cluster/clock/reset"})
}
