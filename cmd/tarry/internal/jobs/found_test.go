package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

// orders adds jobs of order 5 to two topics that index it, and one of order 6.
func orders(t *testing.T) *clitest.Shell {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("topic", "set", "mail", "--index-headers", "order")
	s.OK("topic", "set", "push", "--index-headers", "order,customer")
	s.OK("add", "--topic", "mail", "--id", "m", "--delay", "1h", "--header", "order=5", "x")
	s.OK("add", "--topic", "push", "--id", "p", "--delay", "1h", "--header", "order=5", "x")
	s.OK("add", "--topic", "push", "--id", "q", "--header", "order=5", "x")
	s.OK("add", "--topic", "mail", "--id", "other", "--header", "order=6", "x")
	return s
}

func TestJobsAreListedByHeader(t *testing.T) {
	s := orders(t)
	require.Regexp(t, `(?s)\nm .*\np .*\nq `, s.OK("list", "--where", "order=5"))
	require.Regexp(t, `(?s)\nq `, s.OK("list", "--where", "order=5", "--state", "ready"))
	require.Equal(t, s.OK("list", "--where", "order=5", "--absolute"), s.OK("list", "--header", "order=5", "--absolute"), "its old name")
	require.NotContains(t, s.OK("list", "--help"), "--header")
	code, _, errs := s.Run("list", "--where", "colour=red")
	require.NotZero(t, code)
	require.Contains(t, errs, "header.colour is not indexed by any topic")
}

func TestJobsThatAHeaderFindsAreChanged(t *testing.T) {
	s := orders(t)
	require.Equal(t, "3 would be updated\n", s.OK("update", "--where", "order=5", "--all", "--priority", "7", "--dry-run"))
	require.Equal(t, "3 updated\n", s.OK("update", "--where", "order=5", "--all", "--priority", "7"))
	require.Regexp(t, `(?m)^priority +7$`, s.OK("get", "q"))
	require.Equal(t, "1 updated\n", s.OK("update", "--where", "order=5", "--topic", "mail", "--max", "10", "--delay", "2h"))
	require.Equal(t, "2 kicked; 1 skipped: job \"q\" is neither dead nor delayed\n", s.OK("kick", "--where", "order=5", "--all"))
	require.Equal(t, "2 would be deleted\n", s.OK("delete", "--where", "order=5", "--topic", "push", "--all", "--dry-run"))
	require.Equal(t, "1 deleted; there may be more\n", s.OK("delete", "--where", "order=5", "--max", "1", "--yes"))
	require.Equal(t, "{\"deleted\":2,\"skipped\":0,\"incomplete\":false,\"more\":false}\n", s.OK("delete", "--where", "order=5", "--all", "--yes", "--json"))
	require.Contains(t, s.OK("get", "other"), "mail")
}

func TestChangesOfManyJobsThatAreMistyped(t *testing.T) {
	s := orders(t)
	for says, args := range map[string][]string{
		"--where or --id-prefix for many jobs":                        {"delete"},
		"takes either an ID, or --where or --id-prefix for many jobs": {"update", "--priority", "1"},
		"either --all or --max":                                       {"delete", "--where", "order=5", "--yes"},
		"takes either --all or --max":                                 {"update", "--where", "order=5", "--all", "--max", "3", "--priority", "1"},
		"--max is -1":                                                 {"delete", "--where", "order=5", "--max", "-1"},
		"--header needs no ID":                                        {"delete", "m", "--header", "order=5"},
		"where needs no ID":                                           {"delete", "m", "--where", "order=5"},
		"--where needs no ID":                                         {"update", "m", "--where", "order=5", "--priority", "1"},
		"--token needs an ID":                                         {"delete", "--where", "order=5", "--all", "--token", "0-1-1"},
		"--if-revision needs an ID":                                   {"update", "--where", "order=5", "--all", "--priority", "1", "--if-revision", "1"},
		"say --yes":                                                   {"delete", "--where", "order=5", "--all"},
		"--rate needs --topic":                                        {"kick", "--where", "order=5", "--all", "--rate", "5"},
	} {
		code, _, errs := s.Run(args...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.Contains(t, errs, says)
	}
	require.Regexp(t, `(?s)\nm .*\np .*\nq `, s.OK("list", "--where", "order=5"))
}
