package clienttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestDeadJobsAreGroupedKickedAndDeletedByReason(t *testing.T) {
	c, ctx := connect(t, node(t, apitest.New(t), &apitest.Operator{})), t.Context()
	bury := func(topic, id, reason string) {
		t.Helper()
		mustAdd(t, c, client.NewJob{ID: id, Topic: topic, Body: client.Text("x")})
		mustReserve(t, c, topic)
		_, err := c.Bury(ctx, client.Ref{ID: id}, client.BuryOptions{Reason: reason})
		require.NoError(t, err)
	}
	for _, id := range []string{"a", "b", "c"} {
		bury("mail", id, "refused")
	}
	bury("work", "d", "refused")
	bury("work", "e", "")
	bury("work", "f", "")

	all, err := c.Topics().Dead(ctx, "", 0)
	require.NoError(t, err)
	require.Equal(t, client.DeadReasons{Jobs: 6, Reasons: 2, Groups: []client.DeadReason{
		{Reason: "refused", Jobs: 4, Topics: 2, Example: "a"}, {Jobs: 2, Topics: 1, Example: "e"},
	}}, all)
	work, err := c.Topics().Dead(ctx, "work", 1)
	require.NoError(t, err)
	require.Equal(t, "work", work.Topic)
	require.True(t, work.More)
	require.EqualValues(t, 3, work.Jobs)
	require.Equal(t, "e", work.Groups[0].Example)
	require.False(t, work.Groups[0].FirstDiedAt.IsZero())
	topics, err := c.Topics().DeadTopics(ctx, "refused", 1)
	require.NoError(t, err)
	require.EqualValues(t, []uint64{4, 2}, []uint64{topics.Jobs, topics.Topics})
	require.Equal(t, "mail", topics.Groups[0].Topic)

	var ids []string
	for j, err := range c.Jobs(ctx, client.ListOptions{Topic: "work", State: "dead", Filter: client.Filter{ExactReason: new("")}}) {
		require.NoError(t, err)
		ids = append(ids, j.ID)
	}
	require.Equal(t, []string{"e", "f"}, ids)

	swept, err := c.Topics().Kick(ctx, "work", client.KickOptions{Sweep: client.Sweep{Filter: client.Filter{ExactReason: new("")}}})
	require.NoError(t, err)
	require.Equal(t, client.Swept{Count: 2}, swept)
	swept, err = c.Topics().KickDead(ctx, "refused", client.KickOptions{Sweep: client.Sweep{Max: 1}})
	require.NoError(t, err)
	require.Equal(t, client.Swept{Count: 1, More: true}, swept)
	swept, err = c.Topics().PurgeDead(ctx, "refused", 0)
	require.NoError(t, err)
	require.Equal(t, client.Swept{Count: 3}, swept)
	all, err = c.Topics().Dead(ctx, "", 0)
	require.NoError(t, err)
	require.Zero(t, all.Jobs)
}
