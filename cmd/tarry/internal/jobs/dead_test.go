package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestDeadJobsAreGroupedByReason(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Bury("mail", "m1", "no route")
	s.Bury("mail", "m2", "no route")
	s.Bury("work", "w1", "no route")
	s.Bury("work", "w2", "")

	require.Equal(t, "JOBS  TOPICS  EXAMPLE  REASON\n3     2       m1       no route\n1     1       w2       \"\"\ndead: 4  reasons: 2\n", s.OK("dead"))
	require.Contains(t, s.OK("dead", "work", "--absolute"), "FIRST DIED")
	require.Contains(t, s.OK("dead", "work"), "dead: 2\n")
	require.Contains(t, s.OK("dead", "--json", "--max", "1"), `"reasons":2,"groups":[{"reason":"no route","jobs":3,"topics":2,"example":"m1"}],"more":true}`)
	require.Contains(t, s.OK("dead", "--exact-reason", "no route"), "dead with this reason: 3  topics: 2\n")
	require.Contains(t, s.OK("list", "work", "--exact-reason", ""), "w2")
	require.NotContains(t, s.OK("list", "work", "--exact-reason", ""), "w1")

	require.Equal(t, "3 would be kicked\n", s.OK("kick", "--exact-reason", "no route", "--all", "--dry-run"))
	require.Contains(t, s.OK("kick", "--exact-reason", "no route", "--max", "1"), "1")
	require.Equal(t, "2 would be deleted\n", s.OK("purge", "--exact-reason", "no route", "--state", "dead", "--all", "--dry-run"))
	s.OK("purge", "--exact-reason", "no route", "--state", "dead", "--all", "--yes")
	require.Contains(t, s.OK("dead"), "dead: 1  reasons: 1\n")
}

func TestDeadRefusesWhatHasNoEffect(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for args, reason := range map[string]string{
		"dead mail --exact-reason x":                           "leave out TOPIC",
		"purge --exact-reason x --state ready --all":           "takes a TOPIC",
		"purge --state dead --all":                             "takes a TOPIC",
		"purge --exact-reason x --reason x --state dead --all": "takes a TOPIC",
		"kick --exact-reason x --reason x":                     "--exact-reason alone",
	} {
		code, _, errs := s.Run(strings.Fields(args)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, reason, args)
	}
}
