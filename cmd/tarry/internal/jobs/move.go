package jobs

import (
	"context"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func MoveCommand() *cobra.Command {
	c := cli.NewCommand("move", "put a job, or those of a topic, into another topic", "[ID]", "Puts a job into another topic; or, with --topic, all jobs of a topic or those that match. Each keeps\nits state.",
		"tarry move --topic mail --to mail-archive --states dead --reason 'no route'", 0, 1)
	var f cli.FilterFlags
	f.Register(c)
	var topic, states string
	var m client.MoveOptions
	c.Flags.StringVarP(&topic, "topic", "t", "", "`name` of the topic whose jobs to move")
	c.Flags.StringVar(&m.To, "to", "", "`name` of the topic in which they are then (required)")
	c.Flags.StringVar(&states, "states", "", "with --topic: only jobs in these `states`, separated by commas")
	c.Flags.IntVarP(&m.Max, "max", "n", 0, "`number` of jobs to move at most, 1 to 10000; default: all of them")
	dry := dryFlag(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		switch {
		case m.To == "":
			return cli.Usagef("--to is missing")
		case (topic == "") == (len(args) == 0):
			return cli.Usagef("takes either an ID or --topic")
		case topic == "":
			if err := c.Needs("--topic", append(cli.FilterNames, "states", "max", "dry-run")...); err != nil {
				return err
			}
			changed, err := t.Client.Move(ctx, client.Ref{ID: args[0]}, m.To)
			if err != nil {
				return err
			}
			return printChanged(t, changed)
		case c.Given("max") != "" && m.Max < 1:
			return cli.Usagef("--max is %d; it takes 1 to 10000", m.Max)
		}
		m.Filter = f.Selected()
		m.States = cli.StatesOf(strings.FieldsFunc(states, func(r rune) bool { return r == ',' }))
		b := bulk{
			word: "moved", most: m.Max, also: []string{"skipped"},
			matching: func() (int, error) {
				in := m.States
				if len(in) == 0 {
					in = cli.LiveStates
				}
				return matching(ctx, t, topic, in, m.Filter)
			},
			step: func(cursor string) (bulkStep, error) {
				m.Cursor = cursor
				d, err := t.Client.Topics().Move(ctx, topic, m)
				return bulkStep{ChangedJobs: client.ChangedJobs{Count: d.Count, Skipped: d.Skipped, Reason: d.Reason, More: d.More, Next: d.Next}}, err
			},
		}
		if m.Max == 0 && reflect.ValueOf(m.Filter).IsZero() {
			b.also, b.step = nil, sweep(func() (client.Swept, error) { return t.Client.Topics().MoveAll(ctx, topic, m.To, m.States...) })
		}
		return runBulk(ctx, t, b, *dry, false)
	})
}
