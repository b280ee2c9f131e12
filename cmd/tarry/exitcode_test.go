package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// exitStopped has no line: the process ends where the node tells of its end.
func TestExitCodes(t *testing.T) {
	s := newShell(t)
	s.ok("add", "-t", "t", "-i", "a", "x")
	for _, c := range []struct {
		code int
		line string
		fail *job.Error // of the queue
	}{
		{exitOK, "get a", nil},
		{exitFailed, "cluster health", nil},
		{exitUsage, "get", nil},
		{exitNotFound, "get b", nil},
		{exitNotFound, "schedule get b", nil},
		{exitNothing, "reserve -t nothing", nil},
		{exitRefused, "add -t t -i a y", nil},
		{exitRefused, "finish a --token 0-1-9", nil},
		{exitRefused, "add -t t y", job.Errorf(job.CodeDiskLow, "low")},
		{exitUnreachable, "get a --addr 127.0.0.1:1", nil},
		{exitUnreachable, "add -t t y", job.Errorf(job.CodeNotApplied, "no leader")},
		{exitUnknown, "kick a", job.Unknown("leadership was lost")},
	} {
		if c.fail != nil {
			s.queue.FailNext(c.fail)
		}
		code, _, errs := s.run(append(strings.Fields(c.line), "--patience", "0")...)
		require.Equal(t, c.code, code, "%s: %s", c.line, errs)
	}
}

func TestTheHelpExplainsTheExitCodes(t *testing.T) {
	s := newShell(t)
	help := s.ok("help", "exit-codes")
	for i, c := range exitCodes {
		require.Equal(t, i, c.code)
		require.Contains(t, help, fmt.Sprintf("  %d  %s", c.code, c.meaning))
	}
	require.Contains(t, s.ok("help"), "exit-codes")
}
