package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func setTopic(topic string, s *jobpb.TopicSettings) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: topic, Settings: s}}}
}

// consumers reserve jobs of the topics one by one, through all nodes in turn, and finish each
// after work, until there were so many. They return the jobs in no particular order.
func (c *testCluster) consumers(n, jobs int, work func(*jobpb.Reserved), topics ...string) []*jobpb.Reserved {
	ctx, enough := context.WithTimeout(context.Background(), 3*time.Minute)
	defer enough()
	var mu sync.Mutex
	var got []*jobpb.Reserved
	var all sync.WaitGroup
	for i := range n {
		node := c.nodes[i%len(c.nodes)]
		all.Go(func() {
			for ctx.Err() == nil {
				js, err := node.shard.Reserve(ctx, &jobpb.Reserve{Topics: topics, Max: 1}, 30*time.Second)
				if err != nil || len(js) == 0 {
					continue
				}
				work(js[0])
				if _, err := node.shard.Do(context.Background(), []*jobpb.Op{finish(js[0])}); err != nil {
					c.t.Errorf("finish: %v", err)
				}
				mu.Lock()
				if got = append(got, js[0]); len(got) == jobs {
					enough()
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return got
}

// logged counts the Reserves and the Advances in a node's log.
func logged(t *testing.T, n *Node) (reserves, advances int) {
	first, err := n.shard.stores.Log.FirstIndex()
	require.NoError(t, err)
	last, err := n.shard.stores.Log.LastIndex()
	require.NoError(t, err)
	for i := first; i <= last; i++ {
		var l raft.Log
		require.NoError(t, n.shard.stores.Log.GetLog(i, &l))
		if l.Type != raft.LogCommand {
			continue
		}
		e, err := oplog.DecodeEntry(l.Data)
		require.NoError(t, err)
		for _, op := range e.Ops {
			switch op.Kind.(type) {
			case *jobpb.Op_Reserve:
				reserves++
			case *jobpb.Op_Advance:
				advances++
			}
		}
	}
	return reserves, advances
}

func addMany(t *testing.T, n *Node, topic string, jobs int) {
	ops := make([]*jobpb.Op, jobs)
	for i := range ops {
		ops[i] = add(fmt.Sprint(topic, "-", i), topic, 0)
	}
	do(t, n, ops...)
}

func TestARateAppliesOverAllNodesWithoutUselessReserves(t *testing.T) {
	// A busy machine still delivers twice as many jobs a second.
	const jobs, rate, burst = 200, 50, 5
	c := newTestCluster(t, 3)
	l := c.nodes[c.leader()]
	do(t, l, setTopic("slow", &jobpb.TopicSettings{RateMilli: rate * 1000, Burst: burst}))
	addMany(t, l, "slow", jobs)
	addMany(t, l, "free", jobs)
	before, _ := logged(t, l)
	var order atomic.Int64
	var lastFree, lastSlow atomic.Int64
	got := c.consumers(9, 2*jobs, func(j *jobpb.Reserved) {
		if at := order.Add(1); j.Topic == "free" {
			lastFree.Store(at)
		} else {
			lastSlow.Store(at)
		}
	}, "slow", "free")
	require.Len(t, got, 2*jobs)
	require.Less(t, lastFree.Load(), lastSlow.Load(), "a topic without a limit does not wait for the other")

	var at []int64
	for _, j := range got {
		if j.Topic == "slow" {
			at = append(at, j.ReservedUntilMs-j.TtrMs)
		}
	}
	slices.Sort(at)
	for i := range at {
		for k := i; k < len(at); k++ {
			// A reservation that began in the middle of a millisecond ends as if it had begun with the next one.
			require.LessOrEqual(t, int64(k-i+1)*1000, burst*1000+rate*(at[k]-at[i]+1), "jobs between %d and %d", at[i], at[k])
		}
	}
	reserves, advances := logged(t, l)
	empty := reserves - before - 2*jobs
	t.Logf("%d reserves for %d jobs, %d advances; %d jobs of the slow topic in %d ms", reserves-before, 2*jobs, advances, jobs, at[len(at)-1]-at[0])
	require.LessOrEqual(t, empty, jobs/10, "reserves that found nothing")
	require.LessOrEqual(t, advances, jobs+jobs/10, "an Advance for a token that nobody waits for")
}

func TestNoMoreThanTheLimitAreReservedOverAllNodes(t *testing.T) {
	const jobs, limit = 200, 5
	c := newTestCluster(t, 3)
	l := c.nodes[c.leader()]
	do(t, l, setTopic("t", &jobpb.TopicSettings{MaxReserved: new(uint64(limit))}))
	addMany(t, l, "t", jobs)
	before, _ := logged(t, l)
	var held, most atomic.Int64
	got := c.consumers(20, jobs, func(*jobpb.Reserved) {
		n := held.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		topic, err := l.shard.Topic(context.Background(), "t", false) // also takes some time
		if err != nil || topic.Reserved > limit {
			t.Errorf("%v, %v: more than %d are reserved", topic, err, limit)
		}
		held.Add(-1)
	}, "t")
	require.Len(t, got, jobs)
	require.LessOrEqual(t, most.Load(), int64(limit))
	reserves, advances := logged(t, l)
	t.Logf("%d reserves for %d jobs, %d advances; at most %d held", reserves-before, jobs, advances, most.Load())
	require.LessOrEqual(t, reserves-before-jobs, jobs/10, "reserves that found nothing")
}
