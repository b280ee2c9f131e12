package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
)

func kickCommand() *cobra.Command {
	c := newCommand("kick", "make dead or delayed jobs ready", "[ID]", "Makes a dead or delayed job ready; or, with --topic, dead jobs of a topic, the longest dead first;\nor, with --header or --id-prefix alone, the dead and delayed ones of all topics that this finds.",
		"tarry kick --topic mail --all --reason 'no route' --rate 10", 0, 1)
	var f filterFlags
	f.register(c)
	var topic string
	var k client.KickMany
	var all bool
	c.flags.StringVarP(&topic, "topic", "t", "", "`name` of the topic whose dead jobs to kick")
	c.flags.IntVarP(&k.Max, "max", "n", 1000, "`number` of jobs to kick at most, 1 to 10000")
	c.flags.BoolVar(&all, "all", false, "kick all of them")
	c.flags.Float64Var(&k.Rate, "rate", 0, "`number` of jobs that become due in a second, one after the other; default: all at once")
	c.flags.StringVar(&k.ToTopic, "to-topic", "", "`name` of the topic in which they are then; default: their own")
	dry := c.dryFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		k.Filter = f.filter()
		many := k.Filter.IDPrefix != "" || len(k.Filter.Headers) > 0
		if topic != "" && len(args) == 1 || topic == "" && len(args) == 0 && !many {
			return usagef("takes either an ID or --topic; or --header or --id-prefix alone")
		}
		if len(args) == 1 {
			if err := c.needs("--topic", append(filterNames, "max", "all", "rate", "dry-run")...); err != nil {
				return err
			}
			return t.kickOne(ctx, args[0], k.ToTopic)
		}
		switch {
		case all && c.given("max") != "":
			return usagef("takes either --all or --max")
		case all:
			k.Max = 0
		case k.Max < 1:
			return usagef("--max is %d; it takes 1 to 10000", k.Max)
		}
		if topic == "" {
			if err := c.needs("--topic", "rate"); err != nil {
				return err
			}
			return t.kickFound(ctx, *dry, client.Found{Filter: k.Filter, Max: k.Max}, k.ToTopic)
		}
		if *dry {
			n, err := t.matching(ctx, topic, []string{"dead"}, k.Filter)
			return t.printDry("kicked", atMost(n, k.Max), err)
		}
		swept, err := t.client.KickMany(ctx, topic, k)
		return t.printSwept("kicked", swept, err)
	})
}

func (t *terminal) kickOne(ctx context.Context, id, to string) error {
	kick := func() (client.Changed, error) { return t.client.Kick(ctx, id) }
	if to != "" {
		kick = func() (client.Changed, error) { return t.client.KickTo(ctx, id, to) }
	}
	changed, err := kick()
	if err != nil {
		return err
	}
	return t.printChanged(changed)
}

func purgeCommand() *cobra.Command {
	c := newCommand("purge", "delete the jobs of a topic that are in a state", "TOPIC", "Deletes jobs of a topic that are in a state. They are gone for good, so it asks before,\nwith their number.",
		"tarry purge mail --state dead --all --died-to 2030-01-01T00:00:00Z", 1, 1)
	var f filterFlags
	f.register(c)
	var s client.Sweep
	var state string
	var all bool
	c.flags.StringVarP(&state, "state", "s", "", "delete jobs in this `state`: dead, delayed or ready (required)")
	c.flags.IntVarP(&s.Max, "max", "n", 0, "`number` of jobs to delete at most, 1 to 10000")
	c.flags.BoolVar(&all, "all", false, "delete all of them")
	dry, sure := c.dryFlag(), c.yesFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		switch {
		case state == "":
			return usagef("--state is missing; it takes dead, delayed or ready")
		case all == (s.Max != 0):
			return usagef("takes either --all or --max")
		}
		s.Filter = f.filter()
		matching := func() (int, error) {
			n, err := t.matching(ctx, args[0], []string{state}, s.Filter)
			return atMost(n, s.Max), err
		}
		if *dry {
			n, err := matching()
			return t.printDry("deleted", n, err)
		}
		ask := func(context.Context, *terminal, []string) (string, error) {
			n, err := matching()
			return fmt.Sprintf("Delete %s of %s for good?", jobsOf(n, state), args[0]), err
		}
		if err := t.confirm(ctx, *sure, ask, args); err != nil {
			return err
		}
		swept, err := t.client.Purge(ctx, args[0], state, s)
		return t.printSwept("deleted", swept, err)
	})
}

func moveCommand() *cobra.Command {
	c := newCommand("move", "put a job, or those of a topic, into another topic", "[ID]", "Puts a job into another topic; or, with --topic, all jobs of a topic. Each keeps its state.",
		"tarry move --topic mail --to mail-archive --states dead", 0, 1)
	var topic, to, states string
	c.flags.StringVarP(&topic, "topic", "t", "", "`name` of the topic whose jobs to move")
	c.flags.StringVar(&to, "to", "", "`name` of the topic in which they are then (required)")
	c.flags.StringVar(&states, "states", "", "with --topic: only jobs in these `states`, separated by commas")
	dry := c.dryFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		switch {
		case to == "":
			return usagef("--to is missing")
		case (topic == "") == (len(args) == 0):
			return usagef("takes either an ID or --topic")
		case topic == "":
			if err := c.needs("--topic", "states", "dry-run"); err != nil {
				return err
			}
			changed, err := t.client.Move(ctx, client.Ref{ID: args[0]}, to)
			if err != nil {
				return err
			}
			return t.printChanged(changed)
		}
		in := strings.FieldsFunc(states, func(r rune) bool { return r == ',' })
		if *dry {
			if len(in) == 0 {
				in = []string{"delayed", "ready", "reserved", "dead"}
			}
			n, err := t.matching(ctx, topic, in, client.Filter{})
			return t.printDry("moved", n, err)
		}
		swept, err := t.client.MoveTopic(ctx, topic, to, in...)
		return t.printSwept("moved", swept, err)
	})
}

// printSwept prints how many jobs a sweep has changed.
func (t *terminal) printSwept(word string, s client.Swept, err error) error {
	if err != nil {
		return err
	}
	if t.json {
		return t.out.line("{%q:%d,\"more\":%t}", word, s.Count, s.More)
	}
	more := ""
	if s.More {
		more = "; there may be more"
	}
	return t.out.line("%d %s%s", s.Count, word, more)
}
