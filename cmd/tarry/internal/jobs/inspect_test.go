package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

// What others wrote must not steer the terminal of who looks at it.
func TestAReasonIsShownWholeAndQuoted(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("add", "--topic", "t", "--id", "a", "--backoff", "2m,1h", "x")
	s.OK("reserve", "--topic", "t")
	s.OK("bury", "a", "--reason", "red \x1b[31m\nid  b"+strings.Repeat("!", 90))
	shown := s.OK("get", "a")
	require.Contains(t, shown, `"red \x1b[31m\nid  b`+strings.Repeat("!", 90)+`"`)
	require.NotContains(t, shown, "\x1b")
	require.Regexp(t, `(?m)^backoff +2m, 1h$`, shown)
}

func TestAScheduleIsShownWithItsJob(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("schedule", "put", "a", "x", "--spec", "@daily", "--topic", "t", "--priority", "5", "--ttr", "90", "--max-attempts", "0", "--backoff", "5", "--header", "k=v")
	shown := s.OK("schedule", "get", "a")
	for _, row := range []string{"priority +5", "time to run +1m30s", "max attempts +0", "backoff +5s", "header k +v"} {
		require.Regexp(t, "(?m)^"+row+"$", shown)
	}
}

func TestAJobIsExplained(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("add", "--topic", "t", "--id", "a", "x")
	s.OK("pause", "t", "--for", "1h")
	require.Regexp(t, `the topic is paused for another (1h|59m59s)\n$`, s.OK("explain", "a"))
	require.Regexp(t, `the topic is paused until 20\S+Z\n$`, s.OK("explain", "a", "--absolute"))
	require.Contains(t, s.OK("explain", "a", "--json"), `"cause":"paused"`)
	code, _, errs := s.Run("explain", "b")
	require.NotZero(t, code)
	require.Contains(t, errs, "does not exist")

	s.OK("add", "--topic", "t", "--id", "b", "--delay", "1h", "--expires-at", time.Now().Add(2*time.Hour+time.Second/2).Format(time.RFC3339Nano), "x")
	require.Regexp(t, `^not due for another (1h|59m59s); expires in 2h and is then dropped\n$`, s.OK("explain", "b"))
	s.OK("delete", "b")
	s.OK("resume", "t")
	s.OK("reserve", "--topic", "t", "--consumer", "w")
	require.Regexp(t, `reserved by w for another (1m|59s)\n$`, s.OK("explain", "a"))
	s.OK("bury", "a", "--reason", "at 2030-01-31T12:00:00Z")
	require.Regexp(t, `^dead (since now|for \ds) \("at 2030-01-31T12:00:00Z"\); a kick brings it back\n$`, s.OK("explain", "a"))
}

func TestSeveralJobsAreShownInTheOrderOfTheirIDs(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for _, id := range []string{"a", "b"} {
		s.OK("add", "--topic", "t", "--id", id, "body of "+id)
	}
	code, out, errs := s.Run("get", "b", "nobody", "a", "-j")
	require.Equal(t, cli.ExitNotFound, code)
	require.Regexp(t, `^\{"id":"b".*\n\{"id":"a".*\n$`, out)
	require.Equal(t, "tarry get: job \"nobody\" does not exist; it may have been finished or deleted: topics with the setting retain keep such jobs\n", errs)
	require.Equal(t, "body of a\nbody of b\n", s.OK("get", "a", "b", "--raw"))
	require.Regexp(t, `(?s)^id +b\n.*body +body of b\n\nid +a\n`, s.OK("get", "b", "a"))

	// More than one call gives.
	var many []string
	for range getAtOnce + 1 {
		many = append(many, "a")
	}
	require.Equal(t, getAtOnce+1, strings.Count(s.OK(append([]string{"get", "--raw"}, many...)...), "body of a\n"))
}
