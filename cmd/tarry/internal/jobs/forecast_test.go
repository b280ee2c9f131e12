package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestAForecastShowsWhenJobsAreDue(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for _, due := range []string{"2050-01-31T12:00:00Z", "2050-01-31T13:10:00Z", "2050-01-31T13:20:00Z", "2050-02-01T00:00:00Z"} {
		s.OK("add", "--topic", "mail", "x", "--due-at", due)
	}
	s.OK("add", "--topic", "work", "x", "--due-at", "2050-01-31T12:00:30Z")

	from := "--start=2050-01-31T12:00:00Z"
	full := strings.Repeat("█", barLength)
	require.Equal(t, "FROM (UTC)  JOBS\nMon 12:00   1     "+full[:len(full)/2]+"\nMon 13:00   2     "+full+"\nMon 14:00   0\n"+
		"due before: 0  due after: 1  overdue: 0\n", s.OK("forecast", "mail", from, "--steps", "3"))
	require.Contains(t, s.OK("forecast", from, "--step", "day", "--steps", "1"), "Mon 2050-01-31 12:00  5 ")
	require.Contains(t, s.OK("forecast", from, "--step", "minute", "--absolute"), "\n2050-01-31T12:59:00.000Z  0\n")
	require.Equal(t, `{"topic":"mail","start":"2050-01-31T12:00:00Z","step":3600,"jobs":[1,2],"before":0,"after":1,"overdue":0}`+"\n",
		s.OK("forecast", "mail", from, "--steps", "2", "--json"))

	require.Equal(t, "TOPIC  JOBS\nmail   3     "+full+"\nwork   1     "+full[:13*len("█")]+"\n"+
		"due from 2050-01-31T00:00:00.000Z until 2050-02-01T00:00:00.000Z in all topics: 4\n", s.OK("forecast", "--topics", "--step", "day", "--start", "2050-01-31T00:00:00Z"))
	require.Contains(t, s.OK("forecast", "--topics", from, "-n", "1", "-j"), `"jobs":2,"topics":[{"topic":"mail","jobs":1}]`)
}

func TestAForecastRefusesWhatHasNoEffect(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for args, reason := range map[string]string{
		"forecast --step week":        `--step: must be minute, hour or day, got "week"`,
		"forecast mail --topics":      "leave out TOPIC",
		"forecast --topics --steps 3": "leave out TOPIC and --steps",
		"forecast --max 3":            "--max needs --topics",
	} {
		code, _, errs := s.Run(strings.Fields(args)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, reason, args)
	}
}
