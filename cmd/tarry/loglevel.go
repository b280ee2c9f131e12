package main

import (
	"context"

	"github.com/spf13/cobra"
)

const logLevelText = `Shows or sets the lowest level that the node at --addr logs: debug, info, warn or error. It is set
until the next SIGHUP, which takes that of --log-level or the configuration file, or the restart
of the node. It needs no leader.`

func logLevelCommand() *cobra.Command {
	c := newCommand("log-level", "show or set the log level of a node", "[debug|info|warn|error]", logLevelText, "tarry cluster log-level debug --addr n2:7300", 0, 1)
	c.plans(planLogLevel)
	return c.does(func(ctx context.Context, t *terminal, args []string) (err error) {
		if err := t.needsOneNode(); err != nil {
			return err
		}
		var shown struct {
			Level string `json:"level"`
		}
		if len(args) == 1 {
			shown.Level, err = args[0], t.client.Node().SetLogLevel(ctx, args[0])
		} else {
			shown.Level, err = t.logLevel(ctx)
		}
		switch {
		case err != nil:
			return err
		case t.json:
			return t.printJSON(shown)
		}
		return t.out.line("log level: %s", shown.Level)
	})
}

// logLevel returns the level of the node at --addr; empty: its release does not say it.
func (t *terminal) logLevel(ctx context.Context) (level string, err error) {
	node, err := t.client.Node().Info(ctx)
	for _, s := range node.Settings {
		if s.Name == "log-level" {
			level = s.Value
		}
	}
	return level, err
}
