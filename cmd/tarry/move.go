package main

import (
	"context"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
)

func moveCommand() *cobra.Command {
	c := newCommand("move", "put a job, or those of a topic, into another topic", "[ID]", "Puts a job into another topic; or, with --topic, all jobs of a topic or those that match. Each keeps\nits state.",
		"tarry move --topic mail --to mail-archive --states dead --reason 'no route'", 0, 1)
	var f filterFlags
	f.register(c)
	var topic, states string
	var m client.MoveOptions
	c.flags.StringVarP(&topic, "topic", "t", "", "`name` of the topic whose jobs to move")
	c.flags.StringVar(&m.To, "to", "", "`name` of the topic in which they are then (required)")
	c.flags.StringVar(&states, "states", "", "with --topic: only jobs in these `states`, separated by commas")
	c.flags.IntVarP(&m.Max, "max", "n", 0, "`number` of jobs to move at most, 1 to 10000; default: all of them")
	dry := c.dryFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		switch {
		case m.To == "":
			return usagef("--to is missing")
		case (topic == "") == (len(args) == 0):
			return usagef("takes either an ID or --topic")
		case topic == "":
			if err := c.needs("--topic", append(filterNames, "states", "max", "dry-run")...); err != nil {
				return err
			}
			changed, err := t.client.Move(ctx, client.Ref{ID: args[0]}, m.To)
			if err != nil {
				return err
			}
			return t.printChanged(changed)
		case c.given("max") != "" && m.Max < 1:
			return usagef("--max is %d; it takes 1 to 10000", m.Max)
		}
		m.Filter = f.filter()
		m.States = statesOf(strings.FieldsFunc(states, func(r rune) bool { return r == ',' }))
		b := bulk{
			word: "moved", most: m.Max, also: []string{"skipped"},
			matching: func() (int, error) {
				in := m.States
				if len(in) == 0 {
					in = liveStates
				}
				return t.matching(ctx, topic, in, m.Filter)
			},
			step: func(cursor string) (bulkStep, error) {
				m.Cursor = cursor
				d, err := t.client.Topics().Move(ctx, topic, m)
				return bulkStep{ChangedJobs: client.ChangedJobs{Count: d.Count, Skipped: d.Skipped, Reason: d.Reason, More: d.More, Next: d.Next}}, err
			},
		}
		if m.Max == 0 && reflect.ValueOf(m.Filter).IsZero() {
			b.also, b.step = nil, sweep(func() (client.Swept, error) { return t.client.Topics().MoveAll(ctx, topic, m.To, m.States...) })
		}
		return t.bulk(ctx, b, *dry, false)
	})
}
