// Command tarry is the whole of Tarry in one binary: the server of a node, a
// client for producers and consumers, the operators' commands and the load
// generator.
//
// Start at newRoot, the tree of commands. They are in internal/server (tarry server), internal/jobs (producers
// and consumers), internal/ops (operators) and internal/archive (files: exports, backups, recovery); all of
// them are made with internal/cli.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tarry/cmd/tarry/internal/archive"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/jobs"
	"tarry/cmd/tarry/internal/ops"
	"tarry/cmd/tarry/internal/server"
)

// version is set by the linker: -X main.version=...
var version = "development"

func init() {
	cli.Version = version
	cobra.EnableCommandSorting = false // the help lists them in the order of sections
}

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs the command that args name and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.RunTree(ctx, newRoot(), args, stdin, stdout, stderr)
}

// section is a group of commands in the help.
type section struct {
	id, title string
	commands  []*cobra.Command
}

func sections() []section {
	return []section{
		{"node", "Run a node:", []*cobra.Command{server.Command(os.LookupEnv, server.Serve)}},
		{"clients", "Producers and consumers:", []*cobra.Command{
			jobs.AddCommand(), jobs.ReserveCommand(), jobs.StreamCommand(), jobs.WorkCommand(),
			jobs.FinishCommand(), jobs.ReleaseCommand(), jobs.TouchCommand(), jobs.BuryCommand(), jobs.KickCommand(),
			jobs.DeleteCommand(), jobs.UpdateCommand(), jobs.MoveCommand(), jobs.RescheduleCommand(), jobs.PurgeCommand(),
			jobs.ListCommand(), jobs.GetCommand(), jobs.HistoryCommand(), jobs.ExplainCommand(), jobs.TopicsCommand(), jobs.StatsCommand(), jobs.ForecastCommand(), jobs.DeadCommand(), archive.ExportCommand(), archive.ImportCommand(), jobs.TopCommand(), jobs.PauseCommand(), jobs.ResumeCommand(),
			jobs.ScheduleCommand(), jobs.TopicCommand(),
		}},
		{"operators", "Operators:", []*cobra.Command{ops.ClusterCommand(), ops.DoctorCommand(), ops.DebugCommand(), ops.NamespaceCommand(), ops.TokenCommand(), ops.AuthCommand(), ops.CertCommand(), ops.KeygenCommand(), ops.KeyringCommand(), ops.SecretsCommand(), ops.ReadyCommand(), archive.BackupCommand(), archive.RestoreCommand(), archive.CheckCommand(), archive.RecoverCommand(), ops.StandbyCommand()}},
		{"others", "Others:", []*cobra.Command{ops.BenchCommand(), ops.PlanCommand(), versionCommand()}},
	}
}

// newRoot makes the tree of all commands.
func newRoot() *cobra.Command {
	root := cli.RootOf()
	root.Short = "a delay queue that survives the loss of a node"
	root.Long = "A delay queue that survives the loss of a node: its server, and the commands for\nproducers, consumers and operators."
	for _, s := range sections() {
		root.AddGroup(&cobra.Group{ID: s.id, Title: s.title})
		for _, c := range s.commands {
			c.GroupID = s.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(cli.ExitCodesTopic())
	root.SetHelpCommandGroupID("others")
	root.SetCompletionCommandGroupID("others")
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version of this binary", Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "tarry", version)
			return err
		},
	}
}
