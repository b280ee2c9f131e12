package ops

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// A single look may be older than what was done to a node.
func TestHealthWaitsUntilTheClusterHasBeenHealthyForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var notes []string
		note := func(why string) { notes = append(notes, why) }
		h, err := awaitHealthy(t.Context(), time.Minute, func(context.Context) (client.Health, error) {
			switch at := time.Since(began); {
			case at < time.Second: // the leader has not noticed yet
				return client.Health{Healthy: true}, nil
			case at < 3*time.Second:
				return client.Health{}, errors.New("no leader")
			case at < 20*time.Second:
				return client.Health{Reasons: []string{"n3 does not vote yet"}}, nil
			}
			return client.Health{Healthy: true}, nil
		}, note)
		require.NoError(t, err)
		require.True(t, h.Healthy)
		require.Equal(t, 25*time.Second, time.Since(began))
		require.Equal(t, []string{"no leader", "n3 does not vote yet"}, notes)

		h, err = awaitHealthy(t.Context(), time.Minute, func(context.Context) (client.Health, error) {
			return client.Health{Reasons: []string{"n3 is gone"}}, nil
		}, note)
		require.NoError(t, err)
		require.Equal(t, []string{"n3 is gone"}, h.Reasons)

		_, err = awaitHealthy(t.Context(), time.Second, func(context.Context) (client.Health, error) {
			return client.Health{Healthy: true}, nil
		}, note)
		require.ErrorContains(t, err, "for less than 5s")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = awaitHealthy(ctx, time.Minute, func(context.Context) (client.Health, error) { return client.Health{}, nil }, note)
		require.ErrorContains(t, err, "interrupted")
	})
}
