package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
)

// Exit codes, the same for all commands.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitStopped     = 3
	exitNotFound    = 4
	exitNothing     = 5
	exitRefused     = 6
	exitUnreachable = 7
	exitUnknown     = 8
)

// exitCodes explains them; docs/cli.md has the same table.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "failed: a check found trouble (cluster health, clock, verify and upgrade; backup verify and list; check; standby status; doctor; ready), the command was interrupted, or anything that has no code of its own"},
	{exitUsage, "the command line is wrong, or a question was not answered with yes; nothing was done"},
	{exitStopped, "tarry server only: the node stopped, or did not start, because going on would have risked data; a restart alone does not help"},
	{exitNotFound, "there is no such job, schedule, topic setting or member; it may have been finished or deleted"},
	{exitNothing, "reserve: no job was ready in time"},
	{exitRefused, "a node refused the call, such as a stale token, an id that is taken, a full topic or a low disk, or a line of a file is no job; it was not done"},
	{exitUnreachable, "no node answered, or none could serve, as without a leader; nothing was done, so try again later"},
	{exitUnknown, "the outcome is unknown: it may have been done. Look before you repeat it; an add with an --id can be repeated"},
}

// exit ends a command with its code, without a message: the command has printed one.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode is the code for the error of a command.
func exitCode(err error) int {
	var code exit
	var usage usageError
	var failed *client.Error
	var line lineError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, new(refusedStart)):
		return exitStopped
	case errors.As(err, &line):
		return exitRefused
	case !errors.As(err, &failed):
		return exitFailed
	case failed.Unknown:
		return exitUnknown
	case failed.Code == client.CodeNotFound:
		return exitNotFound
	case failed.Code == client.CodeNotApplied:
		return exitUnreachable
	case failed.Code == client.CodeUnknown: // something that is no node has answered
		return exitFailed
	}
	return exitRefused
}

// exitCodesTopic is the help of that name.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Exit codes of all commands:\n\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", c.code, c.meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "what the exit codes mean", Long: strings.TrimSpace(b.String())}
}
