package main

import (
	"context"
	"fmt"

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
		if *dry {
			n, err := t.matching(ctx, args[0], []client.State{client.StateDelayed}, r.Filter)
			return t.printDry("rescheduled", atMost(n, r.Max), err)
		}
		return t.reschedule(ctx, args[0], r)
	})
}

// reschedule changes the jobs that match, all of them by as many calls as it takes.
func (t *terminal) reschedule(ctx context.Context, topic string, r client.RescheduleOptions) error {
	var sum client.Rescheduled
	for {
		step, err := t.client.Topics().Reschedule(ctx, topic, r)
		if err != nil {
			if sum.Count > 0 {
				t.notes.line("%d rescheduled before this", sum.Count)
			}
			return err
		}
		if sum.Skipped == 0 {
			sum.Reason = step.Reason
		}
		sum.Count, sum.Unchanged, sum.Skipped = sum.Count+step.Count, sum.Unchanged+step.Unchanged, sum.Skipped+step.Skipped
		if sum.More = step.More; !step.More || r.Max != 0 {
			return t.printRescheduled(sum)
		}
		r.Cursor = step.Next
	}
}

func (t *terminal) printRescheduled(r client.Rescheduled) error {
	if t.json {
		return t.out.line("{\"rescheduled\":%d,\"unchanged\":%d,\"skipped\":%d,\"more\":%t}", r.Count, r.Unchanged, r.Skipped, r.More)
	}
	line := fmt.Sprintf("%d rescheduled", r.Count)
	if r.Unchanged > 0 {
		line += fmt.Sprintf("; %d are due then already", r.Unchanged)
	}
	if r.Skipped > 0 {
		line += fmt.Sprintf("; %d skipped: %s", r.Skipped, r.Reason)
	}
	if r.More {
		line += "; there may be more"
	}
	return t.out.line("%s", line)
}
