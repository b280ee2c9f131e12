package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// ExitStopped has no line: the process ends where the node tells of its end.
func TestExitCodes(t *testing.T) {
	s := newShell(t)
	s.OK("add", "-t", "t", "-i", "a", "x")
	for _, c := range []struct {
		code int
		line string
		fail *job.Error // of the queue
	}{
		{cli.ExitOK, "get a", nil},
		{cli.ExitFailed, "cluster health", nil},
		{cli.ExitUsage, "get", nil},
		{cli.ExitNotFound, "get b", nil},
		{cli.ExitNotFound, "schedule get b", nil},
		{cli.ExitNothing, "reserve -t nothing", nil},
		{cli.ExitRefused, "add -t t -i a y", nil},
		{cli.ExitRefused, "finish a --token 0-1-9", nil},
		{cli.ExitRefused, "add -t t y", job.Errorf(job.CodeDiskLow, "low")},
		{cli.ExitUnreachable, "get a --addr 127.0.0.1:1", nil},
		{cli.ExitUnreachable, "add -t t y", job.Errorf(job.CodeNotApplied, "no leader")},
		{cli.ExitUnknown, "kick a", job.Unknown("leadership was lost")},
	} {
		if c.fail != nil {
			s.Queue.FailNext(c.fail)
		}
		code, _, errs := s.Run(append(strings.Fields(c.line), "--patience", "0")...)
		require.Equal(t, c.code, code, "%s: %s", c.line, errs)
	}
}

func TestTheHelpExplainsTheExitCodes(t *testing.T) {
	s := newShell(t)
	help := s.OK("help", "exit-codes")
	for i, c := range cli.ExitCodes {
		require.Equal(t, i, c.Code)
		require.Contains(t, help, fmt.Sprintf("  %d  %s", c.Code, c.Meaning))
	}
	require.Contains(t, s.OK("help"), "exit-codes")
}
