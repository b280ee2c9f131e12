package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node that once led with a clock one hour fast, was set right, and leads again
// must not be an hour ahead again.
func TestClockOfALeadershipEndsWithIt(t *testing.T) {
	c := newTestCluster(t, 3)
	first := c.leader()
	led := c.nodes[first]
	now := time.Now()
	led.clock.now(now, sinceEpoch(now)+time.Hour, 0) // told, and never put into an entry

	other := c.nodes[(first+1)%3]
	c.eventually(func() bool { return other.TransferLeadership(context.Background(), other.cfg.NodeID) == nil }, "another leads")
	c.eventually(func() bool { return other.dispatcher() != nil }, "the other is established")
	c.eventually(func() bool { return led.TransferLeadership(context.Background(), led.cfg.NodeID) == nil }, "the first leads again")
	c.eventually(func() bool { return led.dispatcher() != nil }, "the first is established again")
	require.WithinDuration(t, time.Now(), led.Now(), time.Minute)
}
