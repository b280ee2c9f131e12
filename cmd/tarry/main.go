// Command tarry is the whole of Tarry in one binary: the server of a node, a
// client for producers and consumers, the operators' commands and the load
// generator.
//
// Start at newRoot in main.go, the tree of commands. Server: server.go and config.go.
// Clients and operators: command.go and values.go for what they share, then the file of
// the command. usage.go holds what reads the command line beside cobra.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker: -X main.version=...
var version = "development"

// The help lists commands in the order of sections.
func init() { cobra.EnableCommandSorting = false }

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs the command that args name and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = standard(stdout), standard(stderr)
	root := newRoot()
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	args = flagsBehind(root, args)
	root.SetArgs(twoDashes(root, args))
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		complete(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	return report(notePrinter{printer{stderr}}, cmd, err)
}

// report prints why a command failed, and returns its exit code.
func report(stderr notePrinter, cmd *cobra.Command, err error) int {
	code := exitCode(err)
	var usage usageError
	var silent exit
	switch {
	case err == nil || errors.As(err, &silent):
	case errors.As(err, &usage):
		lines := strings.Split(err.Error(), "\n")
		if len(lines) == 1 {
			stderr.line("%s: %v; see %s --help", cmd.CommandPath(), err, cmd.CommandPath())
			return code
		}
		stderr.line("%s: %d mistakes; see %s --help", cmd.CommandPath(), len(lines), cmd.CommandPath())
		for _, line := range lines {
			stderr.line("  %s", line)
		}
	case cmd.Annotations[toldAnnotation] == explain(err):
		stderr.line("%s: no attempt has succeeded", cmd.CommandPath())
	default:
		stderr.line("%s: %s", cmd.CommandPath(), explain(err))
	}
	return code
}

// section is a group of commands in the help.
type section struct {
	id, title string
	commands  []*cobra.Command
}

func sections() []section {
	return []section{
		{"node", "Run a node:", []*cobra.Command{serverCommand(os.LookupEnv, serve)}},
		{"clients", "Producers and consumers:", []*cobra.Command{
			addCommand(), reserveCommand(), streamCommand(), workCommand(),
			finishCommand(), releaseCommand(), touchCommand(), buryCommand(), kickCommand(),
			deleteCommand(), updateCommand(), moveCommand(), rescheduleCommand(), purgeCommand(),
			listCommand(), getCommand(), historyCommand(), explainCommand(), topicsCommand(), statsCommand(), forecastCommand(), deadCommand(), exportCommand(), importCommand(), topCommand(), pauseCommand(), resumeCommand(),
			scheduleCommand(), topicCommand(),
		}},
		{"operators", "Operators:", []*cobra.Command{clusterCommand(), doctorCommand(), debugCommand(), namespaceCommand(), tokenCommand(), authCommand(), certCommand(), keygenCommand(), keyringCommand(), secretsCommand(), readyCommand(), backupCommand(), restoreCommand(), checkCommand(), recoverCommand(), standbyCommand()}},
		{"others", "Others:", []*cobra.Command{benchCommand(), planCommand(), versionCommand()}},
	}
}

// newRoot makes the tree of all commands.
func newRoot() *cobra.Command {
	root := group("tarry", "a delay queue that survives the loss of a node",
		"A delay queue that survives the loss of a node: its server, and the commands for\nproducers, consumers and operators.")
	root.Version = version
	root.SetVersionTemplate("tarry {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	for _, s := range sections() {
		root.AddGroup(&cobra.Group{ID: s.id, Title: s.title})
		for _, c := range s.commands {
			c.GroupID = s.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(exitCodesTopic())
	root.SetHelpCommandGroupID("others")
	root.SetCompletionCommandGroupID("others")
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version of this binary", Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "tarry", version)
			return err
		},
	}
}
