package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"tarry/client"
)

func kickCommand() *cobra.Command {
	c := newCommand("kick", "make dead or delayed jobs ready", "[ID...]", "Makes dead or delayed jobs ready; or, with --topic, dead jobs of a topic, the longest dead first;\nor, with --where or --id-prefix alone, the dead and delayed ones of all topics that this finds;\nor, with --exact-reason alone, the dead ones of all topics with this reason.",
		"tarry kick --topic mail --all --reason 'no route' --rate 10", 0, math.MaxInt)
	var f filterFlags
	f.register(c)
	var topic string
	var k client.KickOptions
	var all bool
	c.flags.StringVarP(&topic, "topic", "t", "", "`name` of the topic whose dead jobs to kick")
	c.flags.IntVarP(&k.Max, "max", "n", 1000, "`number` of jobs to kick at most, 1 to 10000")
	c.flags.BoolVar(&all, "all", false, "kick all of them")
	c.flags.Float64Var(&k.Rate, "rate", 0, "`number` of jobs that become due in a second, one after the other; default: all at once")
	c.flags.StringVar(&k.ToTopic, "to-topic", "", "`name` of the topic in which they are then; default: their own")
	dry := c.dryFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		k.Filter = f.filter()
		dead := onlyExactReason(k.Filter)
		many := k.Filter.IDPrefix != "" || len(k.Filter.Headers) > 0 || dead
		if topic != "" && len(args) > 0 || topic == "" && len(args) == 0 && !many {
			return usagef("takes either an ID or --topic; or --where, --id-prefix or --exact-reason alone")
		}
		if len(args) > 0 {
			if err := c.needs("--topic", append(filterNames, "max", "all", "rate", "dry-run")...); err != nil {
				return err
			}
			if len(args) > 1 {
				if err := c.needs("one ID", "to-topic"); err != nil {
					return err
				}
				return t.printMany(ctx, c.path(), args, t.client.KickBatch)
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
		b := bulk{word: "kicked", most: k.Max}
		switch {
		case topic != "":
			b.matching = func() (int, error) { return t.matching(ctx, topic, []client.State{client.StateDead}, k.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.client.Topics().Kick(ctx, topic, k) })
		case dead:
			b.matching = func() (int, error) { return t.deadWith(ctx, k.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.client.Topics().KickDead(ctx, *k.Filter.ExactReason, k) })
		default:
			if err := c.needs("--topic", "rate"); err != nil {
				return err
			}
			b = t.changeFound(ctx, "kicked", client.Selection{Filter: k.Filter, Max: k.Max}, func(found client.Selection) (client.ChangedJobs, error) {
				return t.client.KickJobs(ctx, found, k.ToTopic)
			})
		}
		return t.bulk(ctx, b, *dry, false)
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
	c := newCommand("purge", "delete the jobs of a topic that are in a state", "[TOPIC]", "Deletes jobs of a topic that are in a state; or, with --exact-reason alone, the dead ones of\nall topics with this reason. They are gone for good, so it asks before,\nwith their number.",
		"tarry purge mail --state dead --all --died-to 2030-01-01T00:00:00Z", 0, 1)
	var f filterFlags
	f.register(c)
	var s client.Sweep
	var state client.State
	var all bool
	c.flags.StringVarP((*string)(&state), "state", "s", "", "delete jobs in this `state`: dead, delayed or ready (required)")
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
		from := "all topics"
		b := bulk{word: "deleted", most: s.Max, question: func(n int) string { return fmt.Sprintf("Delete %s of %s for good?", jobsOf(n, state), from) }}
		switch {
		case len(args) == 1:
			from = args[0]
			b.matching = func() (int, error) { return t.matching(ctx, from, []client.State{state}, s.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.client.Topics().Purge(ctx, from, state, s) })
		case state != client.StateDead || !onlyExactReason(s.Filter):
			return usagef("takes a TOPIC; or --exact-reason alone, with --state dead")
		default:
			b.matching = func() (int, error) { return t.deadWith(ctx, s.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.client.Topics().PurgeDead(ctx, *s.Filter.ExactReason, s.Max) })
		}
		return t.bulk(ctx, b, *dry, *sure)
	})
}
