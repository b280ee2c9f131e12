package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeadershipThatIsLostBeforeItIsEstablishedLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 2)
	f := c.follower()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.shard.lead(ctx, 1)
	require.Nil(t, f.shard.dispatcher(), "it does not lead")
	do(t, f, add("a", "t", 0))
}
