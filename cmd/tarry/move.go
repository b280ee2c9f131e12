package main

import (
	"context"
	"fmt"
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
		if *dry {
			in := m.States
			if len(in) == 0 {
				in = liveStates
			}
			n, err := t.matching(ctx, topic, in, m.Filter)
			return t.printDry("moved", atMost(n, m.Max), err)
		}
		if m.Max == 0 && reflect.ValueOf(m.Filter).IsZero() {
			swept, err := t.client.Topics().MoveAll(ctx, topic, m.To, m.States...)
			return t.printSwept("moved", swept, err)
		}
		return t.moveMany(ctx, topic, m)
	})
}

// moveMany moves the jobs that match, all of them by as many calls as it takes.
func (t *terminal) moveMany(ctx context.Context, topic string, m client.MoveOptions) error {
	var sum client.Moved
	for {
		step, err := t.client.Topics().Move(ctx, topic, m)
		if err != nil {
			if sum.Count > 0 {
				t.notes.line("%d moved before this", sum.Count)
			}
			return err
		}
		if sum.Skipped == 0 {
			sum.Reason = step.Reason
		}
		sum.Count, sum.Skipped, sum.More = sum.Count+step.Count, sum.Skipped+step.Skipped, step.More
		if !step.More || m.Max != 0 {
			return t.printMoved(sum)
		}
		m.Cursor = step.Next
	}
}

// printMoved prints what was done.
func (t *terminal) printMoved(m client.Moved) error {
	if t.json {
		return t.out.line("{\"moved\":%d,\"skipped\":%d,\"more\":%t}", m.Count, m.Skipped, m.More)
	}
	line := fmt.Sprintf("%d moved", m.Count)
	if m.Skipped > 0 {
		line += fmt.Sprintf("; %d skipped: %s", m.Skipped, m.Reason)
	}
	if m.More {
		line += "; there may be more"
	}
	return t.out.line("%s", line)
}
