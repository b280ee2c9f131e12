package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestLimitsFromTheCommandLine(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	require.Regexp(t, `(?m)^max-reserved +5\nrate +0.5\nburst +2$`, s.OK("topic", "set", "mail", "--max-reserved", "5", "--rate", "0.5", "--burst", "2"))
	require.JSONEq(t, `{"topic":"mail","revision":2,"settings":{"max_reserved":5}}`, s.OK("topic", "unset", "mail", "rate", "burst", "--json"))
	for _, args := range [][]string{{"--rate", "x"}, {"--burst", "1.5"}, {"--max-reserved", "-1"}} {
		code, _, errs := s.Run(append([]string{"topic", "set", "mail"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, args)
		require.NotEmpty(t, errs)
	}
	code, _, errs := s.Run("topic", "set", "mail", "--rate", "0.0001")
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "between 0.001 and")
}
