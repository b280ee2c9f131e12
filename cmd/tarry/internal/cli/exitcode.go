package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
)

// Exit codes, the same for all commands.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitStopped     = 3
	ExitNotFound    = 4
	ExitNothing     = 5
	ExitRefused     = 6
	ExitUnreachable = 7
	ExitUnknown     = 8
)

// ExitCodes explains them; docs/cli.md has the same table.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{ExitOK, "done"},
	{ExitFailed, "failed: a check found trouble (cluster health, clock, verify and upgrade; backup verify and list; check; standby status; doctor; ready), the command was interrupted, or anything that has no code of its own"},
	{ExitUsage, "the command line is wrong, or a question was not answered with yes; nothing was done"},
	{ExitStopped, "tarry server only: the node stopped, or did not start, because going on would have risked data; a restart alone does not help"},
	{ExitNotFound, "there is no such job, schedule, topic setting or member; it may have been finished or deleted"},
	{ExitNothing, "reserve: no job was ready in time"},
	{ExitRefused, "a node refused the call, such as a stale token, an id that is taken, a full topic or a low disk, or a line of a file is no job; it was not done"},
	{ExitUnreachable, "no node answered, or none could serve, as without a leader; nothing was done, so try again later"},
	{ExitUnknown, "the outcome is unknown: it may have been done. Look before you repeat it; an add with an --id can be repeated"},
}

// Exit ends a command with its code, without a message: the command has printed one.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ExitCode is the code for the error of a command.
func ExitCode(err error) int {
	var code Exit
	var usage UsageError
	var failed *client.Error
	var line LineError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, new(RefusedStart)):
		return ExitStopped
	case errors.As(err, &line):
		return ExitRefused
	case !errors.As(err, &failed):
		return ExitFailed
	case failed.Unknown:
		return ExitUnknown
	case failed.Code == client.CodeNotFound:
		return ExitNotFound
	case failed.Code == client.CodeNotApplied:
		return ExitUnreachable
	case failed.Code == client.CodeUnknown: // something that is no node has answered
		return ExitFailed
	}
	return ExitRefused
}

// ExitCodesTopic is the help of that name.
func ExitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Exit codes of all commands:\n\n")
	for _, c := range ExitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", c.Code, c.Meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "what the exit codes mean", Long: strings.TrimSpace(b.String())}
}

// LineError is the error of a line of a file that is no job.
type LineError struct{ Err error }

func (e LineError) Error() string { return e.Err.Error() }

// RefusedStart is the error of a node that does not start until somebody has acted.
type RefusedStart struct{ Err error }

func (r RefusedStart) Error() string { return r.Err.Error() }

func (r RefusedStart) Unwrap() error { return r.Err }
