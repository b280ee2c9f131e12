package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestHistoryOfARetainedJob(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	set, err := c.Topics().SetSettings(ctx, "mail", client.Settings{Retain: client.Duration{Duration: time.Minute}}, client.AnyRevision)
	require.NoError(t, err)
	require.Equal(t, time.Minute, set.Settings.Retain.Duration)
	mustAdd(t, c, client.NewJob{Topic: "mail", ID: "a/b", Body: client.Text("x")})
	jobs, err := c.Reserve(ctx, client.ReserveOptions{Topics: []string{"mail"}, Consumer: "w"})
	require.NoError(t, err)
	require.NoError(t, c.Finish(ctx, jobs[0].Ref()))

	j, err := c.Get(ctx, "a/b")
	require.NoError(t, err)
	require.Equal(t, client.StateFinished, j.State)
	require.False(t, j.FinishedAt.IsZero())
	require.Equal(t, "x", string(j.Bytes()))
	again := mustAdd(t, c, client.NewJob{Topic: "mail", ID: "a/b", Body: client.Text("x")})
	require.True(t, again.Existing)
	require.Equal(t, client.StateFinished, again.State)
	h, err := c.History(ctx, "a/b")
	require.NoError(t, err)
	require.Equal(t, client.StateFinished, h.State)
	require.Len(t, h.Events, 3)
	require.Equal(t, client.Event{At: h.Events[1].At, Event: "reserved", State: "reserved", Attempt: 1, Consumer: "w"}, h.Events[1])
	topic, err := c.Topics().Get(ctx, "mail")
	require.NoError(t, err)
	require.EqualValues(t, 1, topic.Retained)

	_, err = c.History(ctx, "nobody")
	require.ErrorIs(t, err, client.CodeNotFound)
	_, err = c.History(ctx, "")
	require.EqualError(t, err, "id is missing")
	_, err = c.Get(ctx, "")
	require.EqualError(t, err, "id is missing")
}
