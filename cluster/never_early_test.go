package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// A client measures by its own steady clock, from before it asks.
func TestADelayIsNeverShorterThanAskedFor(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.awaitVersion()
	n := c.nodes[c.leader()]
	const delay = 20 * time.Millisecond
	reserve := func() *jobpb.Reserved {
		jobs := reserveOne(t, n, 30*time.Second, "t")
		require.Len(t, jobs, 1)
		return jobs[0]
	}
	for i := range 40 {
		id := fmt.Sprint("j", i)
		asked := time.Now()
		do(t, n, add(id, "t", delay))
		j := reserve()
		require.GreaterOrEqual(t, time.Since(asked), delay, "add %d", i)
		ref := &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}
		asked = time.Now()
		do(t, n, &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: ref, DelayMs: delay.Milliseconds()}}})
		j = reserve()
		require.GreaterOrEqual(t, time.Since(asked), delay, "release %d", i)
		ref = &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}
		asked = time.Now()
		do(t, n, &jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: ref, TtrMs: delay.Milliseconds()}}})
		got := make(chan *jobpb.Reserved, 1)
		go func() {
			jobs, _ := n.shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, 30*time.Second)
			if len(jobs) == 1 {
				got <- jobs[0]
			}
			close(got)
		}()
		j = <-got
		require.NotNil(t, j)
		require.GreaterOrEqual(t, time.Since(asked), delay, "time to run %d", i)
		do(t, n, finish(j))
	}
}
