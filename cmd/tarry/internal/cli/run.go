package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// RunTree runs the command of a tree that args name, and returns the exit code.
func RunTree(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = standard(stdout), standard(stderr)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	args = flagsBehind(root, args)
	root.SetArgs(twoDashes(root, args))
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		complete(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	return report(NotePrinter{Printer{stderr}}, cmd, err)
}

// report prints why a command failed, and returns its exit code.
func report(stderr NotePrinter, cmd *cobra.Command, err error) int {
	code := ExitCode(err)
	var usage UsageError
	var silent Exit
	switch {
	case err == nil || errors.As(err, &silent):
	case errors.As(err, &usage):
		lines := strings.Split(err.Error(), "\n")
		if len(lines) == 1 {
			stderr.Line("%s: %v; see %s --help", cmd.CommandPath(), err, cmd.CommandPath())
			return code
		}
		stderr.Line("%s: %d mistakes; see %s --help", cmd.CommandPath(), len(lines), cmd.CommandPath())
		for _, line := range lines {
			stderr.Line("  %s", line)
		}
	case cmd.Annotations[toldAnnotation] == Explain(err):
		stderr.Line("%s: no attempt has succeeded", cmd.CommandPath())
	default:
		stderr.Line("%s: %s", cmd.CommandPath(), Explain(err))
	}
	return code
}

// RootOf makes the root of a tree of commands.
func RootOf(commands ...*cobra.Command) *cobra.Command {
	root := Group("tarry", "", "", commands...)
	root.Version = Version
	root.SetVersionTemplate("tarry {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(FlagError)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	return root
}
