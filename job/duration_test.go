package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1d": day, "2w": 14 * day, "1w1d": 8 * day, "1d12h": 36 * time.Hour, "1w30m": 7*day + 30*time.Minute,
		"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "0": 0, "0d": 0,
	} {
		d, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, d, text)
	}
	for _, text := range []string{"", "d", "1d1w", "1d2d", "-1d", "-5s", "1d-2h", "9999999w", "99999999d", "106752d", "1 d", "1day", "1d 2h"} {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, "is not a duration", text)
	}
	for _, text := range []string{"-1", "9e9", "NaN", "inf"} {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, "seconds is out of range", text)
	}
}

func TestDurationsAreShownAsTheyAreRead(t *testing.T) {
	for _, text := range []string{"0s", "250ms", "1.5s", "30s", "1m", "1m30s", "1h", "1h30m", "1h0m5s", "10m", "20h", "1d", "14d", "1d12h", "2d30m"} {
		d, err := ParseDuration(text)
		require.NoError(t, err)
		require.Equal(t, text, DurationText(d))
	}
}
