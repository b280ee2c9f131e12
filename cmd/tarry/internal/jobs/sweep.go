package jobs

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func KickCommand() *cobra.Command {
	c := cli.NewCommand("kick", "make dead or delayed jobs ready", "[ID...]", "Makes dead or delayed jobs ready; or, with --topic, dead jobs of a topic, the longest dead first;\nor, with --where or --id-prefix alone, the dead and delayed ones of all topics that this finds;\nor, with --exact-reason alone, the dead ones of all topics with this reason.",
		"tarry kick --topic mail --all --reason 'no route' --rate 10", 0, math.MaxInt)
	var f cli.FilterFlags
	f.Register(c)
	var topic string
	var k client.KickOptions
	var all bool
	c.Flags.StringVarP(&topic, "topic", "t", "", "`name` of the topic whose dead jobs to kick")
	c.Flags.IntVarP(&k.Max, "max", "n", 1000, "`number` of jobs to kick at most, 1 to 10000")
	c.Flags.BoolVar(&all, "all", false, "kick all of them")
	c.Flags.Float64Var(&k.Rate, "rate", 0, "`number` of jobs that become due in a second, one after the other; default: all at once")
	c.Flags.StringVar(&k.ToTopic, "to-topic", "", "`name` of the topic in which they are then; default: their own")
	dry := dryFlag(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		k.Filter = f.Selected()
		dead := onlyExactReason(k.Filter)
		many := k.Filter.IDPrefix != "" || len(k.Filter.Headers) > 0 || dead
		if topic != "" && len(args) > 0 || topic == "" && len(args) == 0 && !many {
			return cli.Usagef("takes either an ID or --topic; or --where, --id-prefix or --exact-reason alone")
		}
		if len(args) > 0 {
			if err := c.Needs("--topic", append(cli.FilterNames, "max", "all", "rate", "dry-run")...); err != nil {
				return err
			}
			if len(args) > 1 {
				if err := c.Needs("one ID", "to-topic"); err != nil {
					return err
				}
				return printMany(ctx, t, c.Path(), args, t.Client.KickBatch)
			}
			return kickOne(ctx, t, args[0], k.ToTopic)
		}
		switch {
		case all && c.Given("max") != "":
			return cli.Usagef("takes either --all or --max")
		case all:
			k.Max = 0
		case k.Max < 1:
			return cli.Usagef("--max is %d; it takes 1 to 10000", k.Max)
		}
		b := bulk{word: "kicked", most: k.Max}
		switch {
		case topic != "":
			b.matching = func() (int, error) { return matching(ctx, t, topic, []client.State{client.StateDead}, k.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.Client.Topics().Kick(ctx, topic, k) })
		case dead:
			b.matching = func() (int, error) { return deadWith(ctx, t, k.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.Client.Topics().KickDead(ctx, *k.Filter.ExactReason, k) })
		default:
			if err := c.Needs("--topic", "rate"); err != nil {
				return err
			}
			b = changeFound(ctx, t, "kicked", client.Selection{Filter: k.Filter, Max: k.Max}, func(found client.Selection) (client.ChangedJobs, error) {
				return t.Client.KickJobs(ctx, found, k.ToTopic)
			})
		}
		return runBulk(ctx, t, b, *dry, false)
	})
}

func kickOne(ctx context.Context, t *cli.Terminal, id, to string) error {
	kick := func() (client.Changed, error) { return t.Client.Kick(ctx, id) }
	if to != "" {
		kick = func() (client.Changed, error) { return t.Client.KickTo(ctx, id, to) }
	}
	changed, err := kick()
	if err != nil {
		return err
	}
	return printChanged(t, changed)
}

func PurgeCommand() *cobra.Command {
	c := cli.NewCommand("purge", "delete the jobs of a topic that are in a state", "[TOPIC]", "Deletes jobs of a topic that are in a state; or, with --exact-reason alone, the dead ones of\nall topics with this reason. They are gone for good, so it asks before,\nwith their number.",
		"tarry purge mail --state dead --all --died-to 2030-01-01T00:00:00Z", 0, 1)
	var f cli.FilterFlags
	f.Register(c)
	var s client.Sweep
	var state client.State
	var all bool
	c.Flags.StringVarP((*string)(&state), "state", "s", "", "delete jobs in this `state`: dead, delayed or ready (required)")
	c.Flags.IntVarP(&s.Max, "max", "n", 0, "`number` of jobs to delete at most, 1 to 10000")
	c.Flags.BoolVar(&all, "all", false, "delete all of them")
	dry, sure := dryFlag(c), c.YesFlag()
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		switch {
		case state == "":
			return cli.Usagef("--state is missing; it takes dead, delayed or ready")
		case all == (s.Max != 0):
			return cli.Usagef("takes either --all or --max")
		}
		s.Filter = f.Selected()
		from := "all topics"
		b := bulk{word: "deleted", most: s.Max, question: func(n int) string { return fmt.Sprintf("Delete %s of %s for good?", cli.JobsOf(n, state), from) }}
		switch {
		case len(args) == 1:
			from = args[0]
			b.matching = func() (int, error) { return matching(ctx, t, from, []client.State{state}, s.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.Client.Topics().Purge(ctx, from, state, s) })
		case state != client.StateDead || !onlyExactReason(s.Filter):
			return cli.Usagef("takes a TOPIC; or --exact-reason alone, with --state dead")
		default:
			b.matching = func() (int, error) { return deadWith(ctx, t, s.Filter) }
			b.step = sweep(func() (client.Swept, error) { return t.Client.Topics().PurgeDead(ctx, *s.Filter.ExactReason, s.Max) })
		}
		return runBulk(ctx, t, b, *dry, *sure)
	})
}
