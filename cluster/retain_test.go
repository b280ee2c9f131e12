package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// Every node returns a finished job with its last consumer. On an idle cluster the job is
// dropped after its retention, with few entries of the log.
func TestFinishedJobsAreRetainedAndDropped(t *testing.T) {
	const jobs = 100
	c := newTestCluster(t, 3)
	l, follower := c.nodes[c.leader()], c.follower()
	ctx := context.Background()
	do(t, l, setTopic("long", &jobpb.TopicSettings{RetainMs: 3_600_000}), setTopic("short", &jobpb.TopicSettings{RetainMs: 1}))
	addMany(t, l, "long", 2)
	got, err := follower.shard.Reserve(ctx, &jobpb.Reserve{Topics: []string{"long"}, Max: 5, Consumer: "worker"}, 10*time.Second)
	require.NoError(t, err)
	require.NotEmpty(t, got)
	do(t, follower, finish(got[0]))
	for _, n := range c.nodes {
		j, err := n.shard.Job(ctx, got[0].Id, false)
		require.NoError(t, err)
		require.Equal(t, jobpb.State_STATE_FINISHED, j.State)
		require.Len(t, j.History, 3)
		require.Equal(t, "worker", j.History[1].Consumer)
	}

	addMany(t, l, "short", jobs)
	_, before := logged(t, l)
	require.Len(t, c.consumers(3, jobs, func(*jobpb.Reserved) {}, "short"), jobs)
	c.eventually(func() bool {
		topic, err := l.shard.Topic(ctx, "short", false)
		return err == nil && topic.Finished == jobs && topic.Retained == 0
	}, "all are forgotten")
	_, err = follower.shard.Job(ctx, "short-0", false)
	require.Equal(t, job.CodeNotFound, job.CodeOf(err))
	_, after := logged(t, l)
	t.Logf("%d advances forgot %d jobs", after-before, jobs)
	require.LessOrEqual(t, after-before, jobs/4, "the ends of retentions are not rounded")
}
