package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What others wrote must not steer the terminal of who looks at it.
func TestAReasonIsShownWholeAndQuoted(t *testing.T) {
	s := newShell(t)
	s.ok("add", "--topic", "t", "--id", "a", "--backoff", "2m,1h", "x")
	s.ok("reserve", "--topic", "t")
	s.ok("bury", "a", "--reason", "red \x1b[31m\nid  b"+strings.Repeat("!", 90))
	shown := s.ok("get", "a")
	require.Contains(t, shown, `"red \x1b[31m\nid  b`+strings.Repeat("!", 90)+`"`)
	require.NotContains(t, shown, "\x1b")
	require.Regexp(t, `(?m)^backoff +2m0s, 1h0m0s$`, shown)
}

func TestAScheduleIsShownWithItsJob(t *testing.T) {
	s := newShell(t)
	s.ok("schedule", "put", "a", "x", "--spec", "@daily", "--topic", "t", "--priority", "5", "--ttr", "90", "--max-attempts", "0", "--backoff", "5", "--header", "k=v")
	shown := s.ok("schedule", "get", "a")
	for _, row := range []string{"priority +5", "time to run +1m30s", "max attempts +0", "backoff +5s", "header k +v"} {
		require.Regexp(t, "(?m)^"+row+"$", shown)
	}
}

func TestAJobIsExplained(t *testing.T) {
	s := newShell(t)
	s.ok("add", "--topic", "t", "--id", "a", "x")
	s.ok("pause", "t", "--for", "1h")
	require.Regexp(t, `the topic is paused until 20\S+Z\n$`, s.ok("explain", "a"))
	require.Contains(t, s.ok("explain", "a", "--json"), `"cause":"paused"`)
	code, _, errs := s.run("explain", "b")
	require.NotZero(t, code)
	require.Contains(t, errs, "does not exist")
}
