package ops

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/sleep"
)

// readyPause is the pause between two looks of a command that waits.
const readyPause = 200 * time.Millisecond

// ReadyCommand asks one node whether it can serve; container health checks call it.
func ReadyCommand() *cobra.Command {
	c := cli.NewCommand("ready", "report whether a node can serve", "", "Exits with 0 when the node can serve clients now, else prints why not and exits with 1. With --patience it waits until the node can.",
		"tarry ready --addr 127.0.0.1:7300", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		if len(t.Nodes) != 1 {
			return cli.Usagef("asks one node, and --addr (or %s) names %d; name one with --addr", cli.AddrEnv, len(t.Nodes))
		}
		if c.Flags.Changed("patience") {
			return awaitReady(ctx, t, t.Nodes[0], c.Patience.Value)
		}
		return t.AskReady(ctx, t.Nodes[0])
	})
}

// awaitReady asks a node until it can serve, for the time of patience.
func awaitReady(ctx context.Context, t *cli.Terminal, node string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		err := t.AskReady(ctx, node)
		if err == nil || time.Now().After(end) || !sleep.For(ctx, readyPause) {
			return err
		}
	}
}

// namesLeader reports whether Leader is what the node knows: empty, there is none. To who may
// not observe a node names neither its leader nor reasons, and one that serves has a leader.
func namesLeader(r cli.ReadyReply) bool { return r.Leader != "" || !r.Ready && len(r.Reasons) > 0 }
