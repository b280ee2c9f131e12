package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
)

// QuietTime is the wait before the first progress message.
const QuietTime = 2 * time.Second

// Operate returns a command that only reports success. oneNode is set when the command
// acts on the node at --addr.
func Operate(c *Command, oneNode bool, done string, f func(context.Context, *client.Client, []string) error) *cobra.Command {
	return c.Does(func(ctx context.Context, t *Terminal, args []string) error {
		if oneNode {
			if err := t.NeedsOneNode(); err != nil {
				return err
			}
		}
		if c.Question != nil {
			if *c.Dry {
				return t.PrintQuestion(ctx, c.Question, args)
			}
			if err := t.Confirm(ctx, *c.Sure, c.Question, args); err != nil {
				return err
			}
		}
		late := time.AfterFunc(QuietTime, func() {
			if !t.Retries.Load() {
				t.Notes.Line("%s: no answer yet; waiting for up to %s", c.Path(), client.OperatorTime)
			}
		})
		defer late.Stop()
		if err := f(ctx, t.Client, args); err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(struct {
				Success bool `json:"success"`
			}{true})
		}
		return t.Out.Line("%s", done)
	})
}

// NeedsOneNode refuses a command that acts on the node at --addr when --addr names several.
func (t *Terminal) NeedsOneNode() error {
	if len(t.Nodes) != 1 {
		return Usagef("acts on one node, and --addr (or %s) names %d; name one with --addr", AddrEnv, len(t.Nodes))
	}
	return nil
}
