package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestJobsOfAConsumerThatIsGoneAreReleased(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Hold("mail", "w1", "a", "b")
	s.Hold("mail", "w2", "c")
	s.Hold("sms", "w1", "d")
	s.OK("add", "-t", "idle", "x")

	require.Equal(t, "3 would be released\n", s.OK("release", "--consumer", "w1", "--all", "--dry-run"))
	require.Equal(t, "{\"would_be_released\":2}\n", s.OK("release", "--consumer", "w1", "--topic", "mail", "--all", "--dry-run", "-j"))
	require.Equal(t, "1 would be released\n", s.OK("release", "--consumer", "w1", "--max", "1", "--dry-run"))
	require.Equal(t, "1 would be released\n", s.OK("release", "--topic", "mail", "--id-prefix", "a", "--all", "--dry-run"))

	code, _, errs := s.Run("release", "--consumer", "w1", "--all")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "say --yes")

	require.Equal(t, "3 released\n", s.OK("release", "--consumer", "w1", "--all", "--yes", "--reason", "w1 is down"))
	require.Contains(t, s.OK("get", "a"), "w1 is down")
	require.Contains(t, s.OK("get", "d", "-j"), `"state":"ready"`)
	require.Contains(t, s.OK("get", "c", "-j"), `"reserved_by":"w2"`)
	require.Equal(t, "1 released\n", s.OK("release", "-t", "mail", "--all", "--yes"))
	require.Equal(t, "0 released\n", s.OK("release", "-t", "mail", "--all", "--yes"))
	require.Equal(t, "0 released\n", s.OK("release", "--consumer", "w1", "--all", "--yes"))
}

func TestAReleaseOverTopicsEndsAtItsMax(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Hold("a", "w", "a1", "a2")
	s.Hold("b", "w", "b1", "b2")
	require.Equal(t, "3 released; there may be more\n", s.OK("release", "--consumer", "w", "--max", "3", "--yes"))
	require.Equal(t, "1 released\n", s.OK("release", "--consumer", "w", "--all", "--yes"))
}

func TestATopicThatRefusesAReleaseIsNamed(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Hold("a", "w", "a1")
	s.Hold("b", "w", "b1")
	s.OK("topic", "set", "a", "--require-token")
	code, out, errs := s.Run("release", "--consumer", "w", "--all", "--yes")
	require.Equal(t, cli.ExitRefused, code)
	require.Equal(t, "1 released\n", out)
	require.Contains(t, errs, "tarry release: a: ")
}

func TestReleasesThatMakeNoSense(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for line, says := range map[string]string{
		"release":                              "either an ID, or --consumer or --topic",
		"release a --consumer w":               "--consumer needs no ID",
		"release a --all":                      "--all needs no ID",
		"release --consumer w":                 "either --all or --max",
		"release --consumer w --all --max 3":   "either --all or --max",
		"release --topic t --max -1":           "--max is -1",
		"release --consumer w --all --delay 5": "--delay needs an ID",
		"release --topic t --all --token 0-1":  "--token needs an ID",
		"release --consumer= --all":            "--consumer is empty",
	} {
		code, _, errs := s.Run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, errs, says, line)
	}
	require.Empty(t, s.Queue.Ops())
}
