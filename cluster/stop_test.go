package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// The futures of entries that Raft accepts while it shuts down never complete. A node that
// waited for them would never stop.
func TestANodeStopsUnderLoad(t *testing.T) {
	c := newTestCluster(t, 1)
	for round := range 20 {
		n := c.nodes[0]
		ctx, cancel := context.WithCancel(t.Context())
		var producers sync.WaitGroup
		var outcomes atomic.Int64
		for p := range 16 {
			producers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					n.shard.Do(ctx, []*jobpb.Op{add(fmt.Sprint(round, p, i), "t", time.Hour)})
					outcomes.Add(1)
				}
			})
		}
		c.eventually(func() bool { return outcomes.Load() >= 64 }, "all producers have added jobs")
		stopped := make(chan error, 1)
		go func() { stopped <- n.Stop() }()
		select {
		case err := <-stopped:
			require.NoError(t, err)
		case <-time.After(30 * time.Second):
			require.FailNow(t, "the node does not stop")
		}
		cancel()
		producers.Wait()
		c.start(0)
		c.leader()
	}
}
