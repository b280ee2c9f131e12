package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestDeadJobsFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Bury("mail", "a1", "no route")
	s.Bury("mail", "b1", "no route")
	s.Bury("mail", "a2", "too big")
	s.OK("add", "--topic", "mail", "--id", "later", "--due-at", "2040-01-01T00:00:00Z", "x")

	require.Regexp(t, `(?m)^a1 +mail +dead +20\S+Z +20\S+Z +20\S+Z +- +1 +no route$`, s.OK("list", "mail", "--absolute"))
	require.Regexp(t, `(?m)^a2 +mail +dead .* too big +body of a2$`, s.OK("list", "mail", "--bodies", "--state", "dead", "--reason", "big"))
	require.Len(t, strings.Split(strings.TrimSpace(s.OK("list", "--id-prefix", "a", "--json")), "\n"), 2)
	require.Contains(t, s.OK("list", "mail", "--due-from", "2039-01-01T00:00:00Z"), "later")
	require.Contains(t, s.OK("list", "mail", "--max", "0", "--header", "tenant=b"), "b1")
	code, out, errs := s.Run("list", "mail", "--max", "1")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "later")
	require.Equal(t, "there may be more; --max is 1\n", errs)
	code, out, errs = s.Run("list", "empty")
	require.Equal(t, []any{cli.ExitOK, "", "no jobs in the topic empty\n"}, []any{code, out, errs})

	require.Equal(t, "1 kicked; there may be more\n", s.OK("kick", "--topic", "mail", "--max", "1"))
	require.Equal(t, "1 kicked\n", s.OK("kick", "--topic", "mail", "--all", "--reason", "route", "--rate", "0.5", "--to-topic", "slow"))
	require.Contains(t, s.OK("list", "slow"), "b1")
	require.Equal(t, "a2 is ready\n", s.OK("kick", "a2", "--to-topic", "slow"))
	require.Equal(t, "a2 is ready\n", s.OK("move", "a2", "--to", "mail"))
	require.Equal(t, "3 moved\n", s.OK("move", "--topic", "mail", "--to", "post"))
	require.Equal(t, "{\"moved\":2,\"more\":false}\n", s.OK("move", "--topic", "post", "--to", "mail", "--states", "ready,dead", "--json"))
	require.Equal(t, "2 deleted\n", s.OK("purge", "mail", "--state", "ready", "--all", "--yes"))
	require.Equal(t, "1 deleted\n", s.OK("purge", "post", "--state", "delayed", "--max", "5", "--id-prefix", "la", "--yes"))
}

func TestJobsThatMatchAreMovedFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Bury("mail", "a1", "no route")
	s.Bury("mail", "a2", "too big")
	s.Bury("mail", "b1", "no route")
	s.OK("add", "--topic", "mail", "--id", "a3", "x")
	require.Equal(t, "1 moved\n", s.OK("move", "-t", "mail", "--to", "post", "--reason", "route", "--id-prefix", "a"))
	require.Equal(t, "{\"moved\":1,\"skipped\":0,\"more\":true}\n", s.OK("move", "-t", "mail", "--to", "post", "--states", "dead", "--max", "1", "--json"))
	require.Equal(t, "2 moved\n", s.OK("move", "-t", "mail", "--to", "slow", "--max", "9"))
	require.Contains(t, s.OK("list", "post"), "a1")
}

func TestBackoffAndHeadersAreUpdatedFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("add", "--topic", "t", "--id", "a", "x")
	s.OK("update", "a", "--backoff", "2m,1h", "--header", "k=v")
	shown := s.OK("get", "a", "--json")
	require.Contains(t, shown, `"delays":[120,3600]`)
	require.Contains(t, shown, `"k":"v"`)
	s.OK("update", "a", "--backoff", "none", "--header", "none")
	shown = s.OK("get", "a", "--json")
	require.NotContains(t, shown, "backoff")
	require.NotContains(t, shown, "headers")
}

func TestSweepsThatMakeNoSense(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for line, says := range map[string]string{
		"list":                                        "takes a TOPIC, --id-prefix or --where",
		"list t --max -1":                             "--max is -1",
		"list t --header x":                           "name=value",
		"list t --due-from tomorrow":                  "RFC 3339",
		"purge t --all":                               "--state is missing",
		"purge t --state dead":                        "either --all or --max",
		"purge t --state dead --all --max 1":          "either --all or --max",
		"kick --topic t --max 0":                      "--max is 0",
		"kick --topic t --all --max 5":                "either --all or --max",
		"kick a --rate 5":                             "--rate needs --topic",
		"kick a --reason x":                           "--reason needs --topic",
		"kick a --died-to 2030-01-01T00:00:00Z --all": "--all needs --topic",
		"kick a --max 5":                              "--max needs --topic",
		"move a":                                      "--to is missing",
		"move --to u":                                 "either an ID or --topic",
		"move a --to u --states dead":                 "--states needs --topic",
		"move a --to u --reason x":                    "--reason needs --topic",
		"move -t t --to u --max 0":                    "--max is 0",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errs := s.Run(strings.Fields(line)...)
			require.Equal(t, cli.ExitUsage, code)
			require.Empty(t, out)
			require.Contains(t, errs, says)
		})
	}
	code, _, errs := s.Run("purge", "t", "--state", "reserved", "--all", "--yes")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "dead, delayed or ready")
}
