package jobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestJobsAreRescheduledFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for n := range 4 {
		s.OK("add", "-t", "mail", "-i", fmt.Sprint("m", n), "--due-at", "2035-01-01T06:00:00Z", "x")
	}
	s.OK("add", "-t", "mail", "-i", "later", "--due-at", "2035-01-01T07:00:00Z", "x")
	herd := []string{"reschedule", "mail", "--due-from", "2035-01-01T06:00:00Z", "--due-to", "2035-01-01T06:01:00Z"}
	with := func(more ...string) []string { return append(append([]string{}, herd...), more...) }

	require.Equal(t, "4 would be rescheduled\n", s.OK(with("--spread", "40m", "--dry-run")...))
	require.Equal(t, "4 rescheduled\n", s.OK(with("--spread", "40m")...))
	wide := []string{"reschedule", "mail", "--due-from", "2035-01-01T06:00:00Z", "--due-to", "2035-01-01T06:40:00Z"}
	again := append(wide, "--spread", "40m")
	require.Equal(t, "0 rescheduled; 4 are due then already\n", s.OK(again...))
	require.Equal(t, `{"rescheduled":0,"unchanged":4,"skipped":0,"more":false}`+"\n", s.OK(append(again, "--json")...))
	require.Equal(t, "2 rescheduled; there may be more\n", s.OK(append(wide, "--postpone", "2h", "--max", "2")...))
	listed := s.OK("list", "mail", "--absolute")
	require.Equal(t, 2, strings.Count(listed, "2035-01-01T06:"), listed)
	require.Equal(t, 2, strings.Count(listed, "2035-01-01T08:"), listed)
	require.Contains(t, listed, "2035-01-01T07:00:00.000Z")

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"reschedule", "mail", "--spread", "1h"}, "--due-from and --due-to are needed"},
		{with(), "takes either --spread or --postpone"},
		{with("--spread", "1h", "--postpone", "1h"), "takes either --spread or --postpone"},
		{with("--postpone", "1h", "--earlier"), "--earlier needs --spread"},
		{with("--postpone", "1h", "--max", "0"), "--max is 0"},
	} {
		code, _, errs := s.Run(c.args...)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, c.says)
	}
}
