package jobs

import (
	"context"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func RescheduleCommand() *cobra.Command {
	c := cli.NewCommand("reschedule", "give other due times to delayed jobs of a topic", "TOPIC", "Gives other due times to the delayed jobs of a topic that are due from --due-from until before --due-to:\nspread evenly over a time from then on, or each later by a time.",
		"tarry reschedule mail --due-from 2030-01-01T06:00:00Z --due-to 2030-01-01T06:01:00Z --spread 30m", 1, 1)
	var f cli.FilterFlags
	f.Register(c)
	var r client.RescheduleOptions
	spread, postpone := cli.Duration{Positive: true}, cli.Duration{Positive: true}
	c.Flags.Var(&spread, "spread", "`time` over which to spread them, such as 30m, at least 1s")
	c.Flags.BoolVar(&r.Earlier, "earlier", false, "with --spread: jobs may become due earlier than they are")
	c.Flags.Var(&postpone, "postpone", "`time` by which each becomes due later, such as 1h, at least 1s")
	c.Flags.IntVarP(&r.Max, "max", "n", 0, "`number` of jobs to change at most, 1 to 10000; default: all of them")
	dry := dryFlag(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		switch {
		case c.Given("due-from") == "" || c.Given("due-to") == "":
			return cli.Usagef("--due-from and --due-to are needed; they say which jobs are meant")
		case spread.Given == postpone.Given:
			return cli.Usagef("takes either --spread or --postpone")
		case postpone.Given && r.Earlier:
			return cli.Usagef("--earlier needs --spread")
		case c.Given("max") != "" && r.Max < 1:
			return cli.Usagef("--max is %d; it takes 1 to 10000", r.Max)
		}
		r.Filter, r.Spread, r.Postpone = f.Selected(), spread.Value, postpone.Value
		return runBulk(ctx, t, bulk{
			word: "rescheduled", most: r.Max, also: []string{"unchanged", "skipped"},
			matching: func() (int, error) { return matching(ctx, t, args[0], []client.State{client.StateDelayed}, r.Filter) },
			step: func(cursor string) (bulkStep, error) {
				r.Cursor = cursor
				d, err := t.Client.Topics().Reschedule(ctx, args[0], r)
				return bulkStep{client.ChangedJobs{Count: d.Count, Skipped: d.Skipped, Reason: d.Reason, More: d.More, Next: d.Next}, d.Unchanged}, err
			},
		}, *dry, false)
	})
}
