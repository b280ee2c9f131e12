package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// limitedCrowd is consumers on all nodes of a cluster, and what they were given.
type limitedCrowd struct {
	t    *testing.T
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu  sync.Mutex
	got []client.Reserved
}

// newCrowd starts consumers that reserve one job at a time of the topic, hand it
// to work and finish it. Each begins with another node and goes to the next when
// that fails.
func (c *cluster) newCrowd(consumers int, topic string, work func()) *limitedCrowd {
	ctx, stop := context.WithCancel(context.Background())
	crowd := &limitedCrowd{t: c.t, ctx: ctx, stop: stop}
	c.t.Cleanup(crowd.halt)
	addrs := c.addrs()
	for i := range consumers {
		turned := append(slices.Clone(addrs[i%len(addrs):]), addrs[:i%len(addrs)]...)
		consumer, err := client.New(turned)
		require.NoError(c.t, err)
		crowd.work.Go(func() {
			defer consumer.Close()
			crowd.consume(consumer, topic, work)
		})
	}
	return crowd
}

func (c *limitedCrowd) consume(consumer *client.Client, topic string, work func()) {
	for c.ctx.Err() == nil {
		jobs, err := consumer.Reserve(c.ctx, client.ReserveOptions{Topics: []string{topic}, Max: 1, Wait: 5 * time.Second})
		if err != nil {
			continue // a node was killed; what it gave comes back
		}
		for _, j := range jobs {
			c.mu.Lock()
			c.got = append(c.got, j)
			c.mu.Unlock()
			work()
			_ = consumer.Finish(c.ctx, j.Ref()) // the same
		}
	}
}

func (c *limitedCrowd) halt() {
	c.stop()
	c.work.Wait()
}

func (c *limitedCrowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

// fill adds jobs that come back soon when their consumer is never heard of again.
func (c *cluster) fill(topic string, jobs int) *client.Client {
	producer, err := client.New(c.addrs())
	require.NoError(c.t, err)
	c.t.Cleanup(producer.Close)
	adds := make([]client.NewJob, jobs)
	for i := range adds {
		adds[i] = client.NewJob{ID: fmt.Sprint(topic, "-", i), Topic: topic, TTR: 3 * time.Second, Body: client.Text("x")}
	}
	_, err = producer.AddAll(c.t.Context(), adds)
	require.NoError(c.t, err)
	return producer
}

// drained waits until the topic has no jobs.
func (c *cluster) drained(producer *client.Client, topic string) {
	c.until(func() error {
		left, err := producer.Topics().Get(c.t.Context(), topic)
		if err == nil && left.Ready+left.Reserved+left.Delayed > 0 {
			err = fmt.Errorf("%d jobs are ready, %d reserved", left.Ready, left.Reserved)
		}
		return err
	})
}

// killLeaderHalfway kills the leader when the crowd has had half of the jobs of topic t,
// and waits until it has had all.
func (c *cluster) killLeaderHalfway(producer *client.Client, crowd *limitedCrowd, jobs int) {
	c.until(func() error {
		if n := crowd.count(); n < jobs/2 {
			return fmt.Errorf("%d of %d jobs", n, jobs)
		}
		return nil
	})
	c.killLeader()
	c.drained(producer, "t")
	crowd.halt()
}

func TestARateHoldsWhileTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	const jobs, rate, burst = 600, 50, 5
	c := startCluster(t, 3)
	c.tarry("topic", "set", "t", "--rate", fmt.Sprint(rate), "--burst", fmt.Sprint(burst))
	producer := c.fill("t", jobs)
	crowd := c.newCrowd(9, "t", func() {})
	c.killLeaderHalfway(producer, crowd, jobs)

	at := make([]int64, len(crowd.got)) // by the state machine's clock
	for i, j := range crowd.got {
		at[i] = j.ReservedUntil.Add(-j.TTR.Duration).UnixMilli()
	}
	slices.Sort(at)
	for i := range at {
		for k := i; k < len(at); k++ {
			// A reservation that began in the middle of a millisecond ends as if it had begun with the next one.
			require.LessOrEqual(t, int64(k-i+1)*1000, burst*1000+rate*(at[k]-at[i]+1), "jobs between %d and %d", at[i], at[k])
		}
	}
	seconds := float64(at[len(at)-1]-at[0]) / 1000
	t.Logf("%d jobs were handed out in %.1f s, %.1f a second, of which the leader was away for some", len(at), seconds, float64(len(at))/seconds)
	c.requireEqualDigests(c.leader(), 3)
}

func TestNoMoreThanTheLimitAreHeldWhileTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	const jobs, limit = 600, 5
	c := startCluster(t, 3)
	c.tarry("topic", "set", "t", "--max-reserved", fmt.Sprint(limit))
	producer := c.fill("t", jobs)
	var most atomic.Uint64
	crowd := c.newCrowd(20, "t", func() {
		topic, err := producer.Topics().Get(context.Background(), "t")
		for m := most.Load(); err == nil && topic.Reserved > m && !most.CompareAndSwap(m, topic.Reserved); m = most.Load() {
		}
	})
	c.killLeaderHalfway(producer, crowd, jobs)
	require.LessOrEqual(t, most.Load(), uint64(limit))
	t.Logf("%d jobs were handed out, at most %d reserved at once", len(crowd.got), most.Load())
	c.requireEqualDigests(c.leader(), 3)
}
