package clienttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestDelayedJobsAreRescheduled(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	start := time.Now().Add(24 * time.Hour).Truncate(time.Minute)
	for i := range 5 {
		mustAdd(t, c, client.NewJob{ID: fmt.Sprint(i), Topic: "mail", Body: client.Text("x"), DueAt: start.Add(time.Duration(i) * time.Minute)})
	}
	ask := client.RescheduleOptions{Sweep: client.Sweep{Max: 2, Filter: client.Filter{DueFrom: start, DueTo: start.Add(time.Hour)}}, Postpone: 2 * time.Hour}
	total := 0
	for more := true; more; {
		got, err := c.Topics().Reschedule(t.Context(), "mail", ask)
		require.NoError(t, err)
		require.LessOrEqual(t, got.Count, 2)
		total += got.Count
		more, ask.Cursor = got.More, got.Next
	}
	require.Equal(t, 5, total)
	j, err := c.Get(t.Context(), "4")
	require.NoError(t, err)
	require.WithinDuration(t, start.Add(2*time.Hour+4*time.Minute), j.DueAt, 0)
	got, err := c.Topics().Reschedule(t.Context(), "mail", client.RescheduleOptions{Sweep: client.Sweep{Filter: client.Filter{DueFrom: start, DueTo: start.Add(3 * time.Hour)}}, Spread: time.Hour})
	require.NoError(t, err)
	require.Equal(t, client.Rescheduled{Unchanged: 5}, got, "none becomes due earlier")
	_, err = c.Topics().Reschedule(t.Context(), "mail", client.RescheduleOptions{Spread: time.Hour})
	require.ErrorContains(t, err, "filter.due_from is missing")
}
