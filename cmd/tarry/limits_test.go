package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitsFromTheCommandLine(t *testing.T) {
	s := newShell(t)
	require.Regexp(t, `(?m)^max-reserved +5\nrate +0.5\nburst +2$`, s.ok("topic", "set", "mail", "--max-reserved", "5", "--rate", "0.5", "--burst", "2"))
	require.JSONEq(t, `{"topic":"mail","revision":2,"settings":{"max_reserved":5}}`, s.ok("topic", "unset", "mail", "rate", "burst", "--json"))
	for _, args := range [][]string{{"--rate", "x"}, {"--burst", "1.5"}, {"--max-reserved", "-1"}} {
		code, _, errs := s.run(append([]string{"topic", "set", "mail"}, args...)...)
		require.Equal(t, exitUsage, code, args)
		require.NotEmpty(t, errs)
	}
	code, _, errs := s.run("topic", "set", "mail", "--rate", "0.0001")
	require.Equal(t, exitRefused, code)
	require.Contains(t, errs, "between 0.001 and")
}
