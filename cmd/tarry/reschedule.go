package main

import (
	"context"

	"github.com/spf13/cobra"

	"tarry/client"
)

func rescheduleCommand() *cobra.Command {
	c := newCommand("reschedule", "give other due times to delayed jobs of a topic", "TOPIC", "Gives other due times to the delayed jobs of a topic that are due from --due-from until before --due-to:\nspread evenly over a time from then on, or each later by a time.",
		"tarry reschedule mail --due-from 2030-01-01T06:00:00Z --due-to 2030-01-01T06:01:00Z --spread 30m", 1, 1)
	var f filterFlags
	f.register(c)
	var r client.RescheduleOptions
	spread, postpone := duration{positive: true}, duration{positive: true}
	c.flags.Var(&spread, "spread", "`time` over which to spread them, such as 30m, at least 1s")
	c.flags.BoolVar(&r.Earlier, "earlier", false, "with --spread: jobs may become due earlier than they are")
	c.flags.Var(&postpone, "postpone", "`time` by which each becomes due later, such as 1h, at least 1s")
	c.flags.IntVarP(&r.Max, "max", "n", 0, "`number` of jobs to change at most, 1 to 10000; default: all of them")
	dry := c.dryFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		switch {
		case c.given("due-from") == "" || c.given("due-to") == "":
			return usagef("--due-from and --due-to are needed; they say which jobs are meant")
		case spread.set == postpone.set:
			return usagef("takes either --spread or --postpone")
		case postpone.set && r.Earlier:
			return usagef("--earlier needs --spread")
		case c.given("max") != "" && r.Max < 1:
			return usagef("--max is %d; it takes 1 to 10000", r.Max)
		}
		r.Filter, r.Spread, r.Postpone = f.filter(), spread.d, postpone.d
		return t.bulk(ctx, bulk{
			word: "rescheduled", most: r.Max, also: []string{"unchanged", "skipped"},
			matching: func() (int, error) { return t.matching(ctx, args[0], []client.State{client.StateDelayed}, r.Filter) },
			step: func(cursor string) (bulkStep, error) {
				r.Cursor = cursor
				d, err := t.client.Topics().Reschedule(ctx, args[0], r)
				return bulkStep{client.ChangedJobs{Count: d.Count, Skipped: d.Skipped, Reason: d.Reason, More: d.More, Next: d.Next}, d.Unchanged}, err
			},
		}, *dry, false)
	})
}
