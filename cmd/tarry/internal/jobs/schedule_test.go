package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestSchedulesFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	put := []string{"schedule", "put", "nightly", "for {{planned}}", "--spec", "30 2 * * *", "--zone", "Europe/Berlin", "--topic", "report",
		"--overlap", "skip", "--missed", "all", "--missed-max", "3", "--missed-after", "1m", "--jitter", "2s", "--header", "a=b", "--backoff", "1m,1h", "--ttr", "90s"}
	require.Contains(t, s.OK(put...), "nightly is made, revision")
	require.Contains(t, s.OK(put...), "nightly is as it was")
	require.Contains(t, s.OK(append(put, "--priority", "7")...), "nightly is replaced")
	shown := s.OK("schedule", "get", "nightly", "--absolute")
	require.Regexp(t, `(?m)^missed +all up to 3, after 1m$`, shown)
	require.Regexp(t, `(?m)^next run +20`, shown)
	require.Regexp(t, `(?m)^nightly +30 2 \* \* \* +Europe/Berlin +20\S+ +report +0$`, s.OK("schedule", "list", "--absolute"))
	require.Contains(t, s.OK("schedule", "run", "nightly", "--key", "k"), "nightly@now-k is ready")
	require.Contains(t, s.OK("schedule", "run", "nightly", "--key", "k"), "it was there already")
	require.Regexp(t, `started \(out of turn\) +nightly@`, s.OK("schedule", "runs", "nightly"))
	require.Regexp(t, `^for 20\S+\+0[12]:00$`, jobBody(t, s))
	s.OK("schedule", "pause", "nightly")
	require.Regexp(t, `Berlin +paused`, s.OK("schedule", "list"))
	s.OK("schedule", "resume", "nightly")
	require.Contains(t, s.OK("schedule", "list", "--json"), `"paused":false`)
	code, _, errs := s.Run("schedule", "delete", "nightly", "--if-revision", "1")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "revision")
	s.OK("schedule", "delete", "nightly")
	require.Empty(t, s.OK("schedule", "list", "--json"))
}

func jobBody(t *testing.T, s *clitest.Shell) string {
	var j struct{ Body string }
	require.NoError(t, json.Unmarshal([]byte(s.OK("reserve", "--topic", "report", "--json")), &j))
	return j.Body
}

func TestPreviewsFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	require.Equal(t, "2026-03-29T03:00:00+02:00\n2026-03-30T02:30:00+02:00\n",
		s.OK("schedule", "preview", "--spec", "30 2 * * *", "--zone", "Europe/Berlin", "--after", "2026-03-28T12:00:00Z", "--count", "2"))
	code, _, errs := s.Run("schedule", "preview", "--spec", "30 2 * * *", "nightly")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "either a NAME or --spec")
	for line, says := range map[string]string{
		"schedule preview a --zone UTC":                             "--zone needs --spec",
		"schedule preview a --after 2030-01-01T00:00:00Z":           "--after needs --spec",
		"schedule run a --key=":                                     "it is empty",
		"schedule preview a --count 0":                              "--count is 0",
		"schedule delete a --if-revision 0":                         "revisions start with 1",
		"schedule put a b --spec @daily --topic t --if-revision 0":  "revisions start with 1",
		"schedule put a b --spec @daily --topic t --missed-after 0": "leave the flag out",
		"schedule put a {b --spec @daily --topic t --body-json":     "BODY is not a JSON value",
	} {
		code, _, errs = s.Run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, errs, says, line)
	}
	code, _, errs = s.Run("schedule", "preview", "--spec", "30 2 * *")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "4 fields")
	code, _, errs = s.Run("schedule", "preview", "0 9 * * *")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, "a cron expression goes behind --spec")
	code, _, errs = s.Run("schedule", "put", "x", "y", "--spec", "@daily")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--topic")
}
