package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// Raft forgets entries that it was given at the moment it shuts down: nobody answers
// their futures. A node that waited for them would never stop.
func TestANodeStopsWhileItIsGivenJobs(t *testing.T) {
	c := newTestCluster(t, 1)
	for round := range 20 {
		n := c.nodes[0]
		ctx, cancel := context.WithCancel(t.Context())
		var producers sync.WaitGroup
		for p := range 16 {
			producers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					n.shard.Do(ctx, []*jobpb.Op{add(fmt.Sprint(round, p, i), "t", time.Hour)})
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
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
