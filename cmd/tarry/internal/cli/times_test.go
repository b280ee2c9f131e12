package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimesAreRelativeToNow(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := Clock{Now: func() time.Time { return now }}
	for shown, d := range map[string]time.Duration{
		"now":      400 * time.Millisecond,
		"in 1s":    600 * time.Millisecond,
		"in 59s":   59 * time.Second,
		"1m ago":   -time.Minute,
		"in 1m30s": 90 * time.Second,
		"in 1h":    time.Hour - 300*time.Millisecond,
		"2h5m ago": -2*time.Hour - 5*time.Minute - 7*time.Second,
		"in 3d4h":  76 * time.Hour,
		"in 14d":   14*24*time.Hour + 5*time.Hour,
	} {
		require.Equal(t, shown, c.When(now.Add(d)), d)
	}
	require.Equal(t, "-", c.When(time.Time{}))
	c.Absolute = true
	require.Equal(t, "2030-01-01T00:00:01.000Z", c.When(now.Add(time.Second)))
}
