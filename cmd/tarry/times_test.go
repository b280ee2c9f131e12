package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimesAreRelativeToNow(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := clock{now: func() time.Time { return now }}
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
		require.Equal(t, shown, c.when(now.Add(d)), d)
	}
	require.Equal(t, "-", c.when(time.Time{}))
	c.absolute = true
	require.Equal(t, "2030-01-01T00:00:01.000Z", c.when(now.Add(time.Second)))
}

func TestDurationsTakeDaysAndWeeks(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "2w": 14 * day, "1w1d": 8 * day, "1d12h": 36 * time.Hour, "1w30m": 7*day + 30*time.Minute,
		"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "0": 0, "0d": 0,
	} {
		var d duration
		require.NoError(t, d.Set(text), text)
		require.Equal(t, want, d.d, text)
	}
	for _, text := range []string{"", "d", "1d1w", "1d2d", "-1d", "1d-2h", "9999999w", "99999999d", "106752d", "1 d", "1day", "1d 2h"} {
		require.ErrorContains(t, new(duration).Set(text), "is not a duration", text)
	}
	s := newShell(t)
	require.Contains(t, s.ok("add", "-t", "mail", "-i", "a", "-d", "2w", "x"), "a is delayed, due in 14d")
	require.Regexp(t, `(?m)^retain +14d$`, s.ok("topic", "set", "mail", "--retain", "2w"))
	require.Contains(t, s.ok("add", "-t", "mail", "--backoff", "1d,1w", "--json", "-i", "b", "x"), `"id":"b"`)
	require.Contains(t, s.ok("get", "b", "--json"), `"delays":[86400,604800]`)
}
