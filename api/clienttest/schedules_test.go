package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestASchedulesLifeThroughTheClient(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	s := client.Schedule{
		Spec: "0 30 2 * * *", Zone: "Europe/Berlin", Jitter: client.Duration{Duration: time.Minute}, Missed: "all", MissedMax: 3,
		Job: client.ScheduledJob{Topic: "report", Body: client.JSON([]byte(`{"for":"{{planned}}"}`)), Headers: map[string]string{"a": "b"}},
	}
	put, err := c.Schedules().Put(ctx, "nightly", s, 0)
	require.NoError(t, err)
	require.False(t, put.Existing || put.Replaced)
	again, err := c.Schedules().Put(ctx, "nightly", s, 0)
	require.NoError(t, err)
	require.True(t, again.Existing)
	s.Overlap = "skip"
	_, err = c.Schedules().Put(ctx, "nightly", s, put.Revision+7)
	require.ErrorIs(t, err, client.CodeConditionFailed)
	put, err = c.Schedules().Put(ctx, "nightly", s, put.Revision)
	require.NoError(t, err)
	require.True(t, put.Replaced)

	got, err := c.Schedules().Get(ctx, "nightly")
	require.NoError(t, err)
	require.Equal(t, []any{"nightly", put.Revision, "skip", 30 * time.Second, `{"for":"{{planned}}"}`, "b"},
		[]any{got.Name, got.Revision, got.Overlap, got.MissedAfter.Duration, string(got.Job.Value), got.Job.Headers["a"]})
	require.False(t, got.NextAt.IsZero())
	list, err := client.Collect(c.Schedules().List(ctx, client.PageOptions{}))
	require.NoError(t, err)
	require.Equal(t, []client.ScheduleInfo{got}, list)
	planned, err := c.Schedules().Preview(ctx, "nightly", 2)
	require.NoError(t, err)
	require.Len(t, planned, 2)
	require.Equal(t, got.NextAt, planned[0].At)

	added, err := c.Schedules().Run(ctx, "nightly", "k")
	require.NoError(t, err)
	require.Equal(t, []any{client.StateReady, "nightly@now-k", false}, []any{added.State, added.ID, added.Existing})
	added, err = c.Schedules().Run(ctx, "nightly", "k")
	require.NoError(t, err)
	require.True(t, added.Existing)
	runs, err := c.Schedules().Runs(ctx, "nightly")
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, []any{"started", true, added.ID}, []any{runs[0].Outcome, runs[0].Now, runs[0].ID})

	require.NoError(t, c.Schedules().Pause(ctx, "nightly"))
	got, err = c.Schedules().Get(ctx, "nightly")
	require.NoError(t, err)
	require.True(t, got.Paused && got.NextAt.IsZero())
	require.NoError(t, c.Schedules().Resume(ctx, "nightly"))
	require.ErrorIs(t, c.Schedules().Delete(ctx, "nightly", put.Revision), client.CodeConditionFailed)
	require.NoError(t, c.Schedules().Delete(ctx, "nightly", 0))
	require.ErrorIs(t, c.Schedules().Delete(ctx, "nightly", 0), client.CodeNotFound)
}

func TestASpecIsTriedWithoutBeingKept(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	after := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	runs, err := c.Schedules().PreviewSpec(t.Context(), client.Schedule{Spec: "30 2 * * *", Zone: "Europe/Berlin"}, after, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}, []string{runs[0].Local, runs[1].Local})
	_, err = c.Schedules().PreviewSpec(t.Context(), client.Schedule{Spec: "30 25 * * *"}, time.Time{}, 2)
	require.ErrorContains(t, err, "for the hour, at byte 4")
}
