package ops

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tarry/cmd/tarry/internal/cli"
)

// planLogLevel says what tarry cluster log-level would change.
func planLogLevel(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	now, err := logLevel(ctx, t)
	if err != nil || len(args) == 0 || args[0] == now {
		return "the log level is " + now, err
	}
	return fmt.Sprintf("the log level would change from %s to %s", now, args[0]), nil
}

const logLevelText = `Shows or sets the lowest level that the node at --addr logs: debug, info, warn or error. It is set
until the next SIGHUP, which takes that of --log-level or the configuration file, or the restart
of the node. It needs no leader.`

func logLevelCommand() *cobra.Command {
	c := cli.NewCommand("log-level", "show or set the log level of a node", "[debug|info|warn|error]", logLevelText, "tarry cluster log-level debug --addr n2:7300", 0, 1)
	c.Plans(planLogLevel)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) (err error) {
		if err := t.NeedsOneNode(); err != nil {
			return err
		}
		var shown struct {
			Level string `json:"level"`
		}
		if len(args) == 1 {
			shown.Level, err = args[0], t.Client.Node().SetLogLevel(ctx, args[0])
		} else {
			shown.Level, err = logLevel(ctx, t)
		}
		switch {
		case err != nil:
			return err
		case t.JSON:
			return t.PrintJSON(shown)
		}
		return t.Out.Line("log level: %s", shown.Level)
	})
}

// logLevel returns the level of the node at --addr; empty: its release does not say it.
func logLevel(ctx context.Context, t *cli.Terminal) (level string, err error) {
	node, err := t.Client.Node().Info(ctx)
	for _, s := range node.Settings {
		if s.Name == "log-level" {
			level = s.Value
		}
	}
	return level, err
}
