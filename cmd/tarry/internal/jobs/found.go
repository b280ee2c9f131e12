package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// foundFlags are the flags of commands that change the jobs of all topics which a filter
// finds, instead of the one with an ID.
type foundFlags struct {
	topic string
	state client.State
	most  int
	all   bool
	dry   *bool
}

// register adds the flags but for those of the filter.
func (f *foundFlags) register(c *cli.Command) {
	c.Flags.StringVarP(&f.topic, "topic", "t", "", "without ID: only jobs of the topic with this `name`")
	c.Flags.StringVarP((*string)(&f.state), "state", "s", "", "without ID: only jobs in this `state`: delayed, ready, reserved or dead")
	c.Flags.IntVarP(&f.most, "max", "n", 0, "without ID: maximum `number` of jobs, 1 to 10000")
	c.Flags.BoolVar(&f.all, "all", false, "without ID: all of them")
	f.dry = dryFlag(c)
}

// foundNames are the flags that register adds.
var foundNames = []string{"topic", "state", "max", "all", "dry-run"}

// found returns which jobs are meant.
func (f *foundFlags) found(filter client.Filter) (client.Selection, error) {
	switch {
	case filter.IDPrefix == "" && len(filter.Headers) == 0:
		return client.Selection{}, cli.Usagef("takes either an ID, or --where or --id-prefix for many jobs")
	case f.all == (f.most != 0):
		return client.Selection{}, cli.Usagef("takes either --all or --max")
	case f.most < 0:
		return client.Selection{}, cli.Usagef("--max is %d; it takes 1 to 10000", f.most)
	}
	return client.Selection{Topic: f.topic, State: f.state, Filter: filter, Max: f.most}, nil
}

// changeFound is what is done with the jobs that are found.
func changeFound(ctx context.Context, t *cli.Terminal, word string, found client.Selection, call func(client.Selection) (client.ChangedJobs, error)) bulk {
	return bulk{
		word: word, most: found.Max, also: []string{"skipped", "incomplete"}, matching: func() (int, error) { return countFound(ctx, t, found) },
		step: func(cursor string) (bulkStep, error) {
			found.Cursor = cursor
			done, err := call(found)
			return bulkStep{ChangedJobs: done}, err
		},
	}
}

func DeleteCommand() *cobra.Command {
	c, s := newStep("delete", "delete jobs by their ids, or those that a header finds", "[ID...]", 0, "Deletes jobs in any state; or, with --where or --id-prefix, those of all topics that this finds.\nThese are gone for good, so it asks before, with their number.",
		"tarry delete --where order=5 --all", "token if")
	var filter cli.FilterFlags
	filter.Register(c)
	var f foundFlags
	f.register(c)
	sure := c.YesFlag()
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) > 0 {
			if err := c.Needs("no ID", append(append(cli.FilterNames, foundNames...), "yes")...); err != nil {
				return err
			}
			return s.each(ctx, t, c, args, deleteStep, func(ctx context.Context, ids []string) ([]client.ChangeResult, error) { return deleteMany(ctx, t, ids) })
		}
		if err := c.Needs("an ID", "token", "if-revision", "if-state"); err != nil {
			return err
		}
		found, err := f.found(filter.Selected())
		if err != nil {
			return err
		}
		b := changeFound(ctx, t, "deleted", found, func(found client.Selection) (client.ChangedJobs, error) {
			return t.Client.DeleteJobs(ctx, found)
		})
		b.question = func(n int) string { return fmt.Sprintf("Delete %s for good?", cli.JobsOf(n, found.State)) }
		return runBulk(ctx, t, b, *f.dry, *sure)
	})
}

func UpdateCommand() *cobra.Command {
	c, s := newStep("update", "change jobs that are not reserved, by their ids or a header", "[ID...]", 0, "Changes what is named of delayed, ready or dead jobs; the rest stays. Or, with --where or --id-prefix,\nof the jobs of all topics that this finds.",
		"tarry update --where order=5 --all --delay 2h", "due priority ttr-of-job attempts backoff headers push-url body if")
	var filter client.Filter
	cli.WhereFlag(c, "without ID: only jobs with this header, `name=value`; may be repeated", &filter.Headers)
	c.Flags.StringVar(&filter.IDPrefix, "id-prefix", "", "without ID: only jobs whose id starts with this `text`")
	var f foundFlags
	f.register(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(args) > 0 {
			if err := c.Needs("no ID", append(foundNames, "where", "id-prefix")...); err != nil {
				return err
			}
			return s.each(ctx, t, c, args, updateStep, func(ctx context.Context, ids []string) ([]client.ChangeResult, error) {
				updates := make([]client.JobUpdate, len(ids))
				for i, id := range ids {
					updates[i] = client.JobUpdate{ID: id, Update: s.update()}
				}
				return t.Client.UpdateBatch(ctx, updates)
			})
		}
		if err := c.Needs("an ID", "if-revision", "if-state"); err != nil {
			return err
		}
		if filter.IDPrefix == "" && len(filter.Headers) == 0 {
			return cli.Usagef("takes either an ID, or --where or --id-prefix for many jobs")
		}
		found, err := f.found(filter)
		if err != nil {
			return err
		}
		return runBulk(ctx, t, changeFound(ctx, t, "updated", found, func(found client.Selection) (client.ChangedJobs, error) {
			return t.Client.UpdateJobs(ctx, found, s.update())
		}), *f.dry, false)
	})
}
