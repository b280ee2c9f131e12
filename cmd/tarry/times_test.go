package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

func TestDurationsTakeDaysAndWeeks(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "2w": 14 * day, "1w1d": 8 * day, "1d12h": 36 * time.Hour, "1w30m": 7*day + 30*time.Minute,
		"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "0": 0, "0d": 0,
	} {
		var d cli.Duration
		require.NoError(t, d.Set(text), text)
		require.Equal(t, want, d.Value, text)
	}
	for _, text := range []string{"", "d", "1d1w", "1d2d", "-1d", "1d-2h", "9999999w", "99999999d", "106752d", "1 d", "1day", "1d 2h"} {
		require.ErrorContains(t, new(cli.Duration).Set(text), "is not a duration", text)
	}
	s := newShell(t)
	require.Contains(t, s.OK("add", "-t", "mail", "-i", "a", "-d", "2w", "x"), "a is delayed, due in 14d")
	require.Regexp(t, `(?m)^retain +14d$`, s.OK("topic", "set", "mail", "--retain", "2w"))
	require.Contains(t, s.OK("add", "-t", "mail", "--backoff", "1d,1w", "--json", "-i", "b", "x"), `"id":"b"`)
	require.Contains(t, s.OK("get", "b", "--json"), `"delays":[86400,604800]`)
}
