package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// There are more jobs than one step of the timer lists, and no consumer reserves.
func TestAnExpiryThatIsSetLaterAppliesToExistingJobs(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	f := c.follower()
	const jobs = 2*advanceSlice + advanceSlice/2
	addMany(t, f, "t", jobs)
	totals, err := f.shard.Totals(t.Context(), false)
	require.NoError(t, err)
	require.Truef(t, proto.Equal(&jobpb.Totals{Topics: 1, Ready: jobs}, totals), "got %v", totals)

	do(t, f, setTopic("t", &jobpb.TopicSettings{ExpireMs: 1}))
	c.eventually(func() bool {
		topic, err := f.shard.Topic(t.Context(), "t", false)
		return err == nil && topic.Expired == jobs
	}, "all jobs expire")
	totals, err = f.shard.Totals(t.Context(), false)
	require.NoError(t, err)
	require.Truef(t, proto.Equal(&jobpb.Totals{Topics: 1}, totals), "got %v", totals)
}
