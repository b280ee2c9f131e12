package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tarry/client"
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
func (f *foundFlags) register(c *clientCommand) {
	c.flags.StringVarP(&f.topic, "topic", "t", "", "without ID: only jobs of the topic with this `name`")
	c.flags.StringVarP((*string)(&f.state), "state", "s", "", "without ID: only jobs in this `state`: delayed, ready, reserved or dead")
	c.flags.IntVarP(&f.most, "max", "n", 0, "without ID: maximum `number` of jobs, 1 to 10000")
	c.flags.BoolVar(&f.all, "all", false, "without ID: all of them")
	f.dry = c.dryFlag()
}

// foundNames are the flags that register adds.
var foundNames = []string{"topic", "state", "max", "all", "dry-run"}

// found returns which jobs are meant.
func (f *foundFlags) found(filter client.Filter) (client.Selection, error) {
	switch {
	case filter.IDPrefix == "" && len(filter.Headers) == 0:
		return client.Selection{}, usagef("takes either an ID, or --where or --id-prefix for many jobs")
	case f.all == (f.most != 0):
		return client.Selection{}, usagef("takes either --all or --max")
	case f.most < 0:
		return client.Selection{}, usagef("--max is %d; it takes 1 to 10000", f.most)
	}
	return client.Selection{Topic: f.topic, State: f.state, Filter: filter, Max: f.most}, nil
}

// count counts the jobs that are meant, up to the limit.
func (t *terminal) count(ctx context.Context, f client.Selection) (n int, err error) {
	q := client.ListOptions{State: f.State, Filter: f.Filter, Page: 1000}
	for j, err := range t.client.Jobs(ctx, q) {
		if errors.Is(err, client.ErrIncomplete) {
			t.notes.line("%v", err)
			break
		}
		if err != nil {
			return 0, err
		}
		if f.Topic == "" || j.Topic == f.Topic {
			n++
		}
		if f.Max > 0 && n == f.Max {
			break
		}
	}
	return n, nil
}

// changeFound changes the jobs that are found, or only counts them.
func (t *terminal) changeFound(ctx context.Context, word string, dry bool, f client.Selection, change func(client.Selection) (client.ChangedJobs, error)) error {
	if dry {
		n, err := t.count(ctx, f)
		return t.printDry(word, n, err)
	}
	var sum client.ChangedJobs
	for {
		step, err := change(f)
		if err != nil {
			if sum.Count > 0 {
				t.notes.line("%d %s before this", sum.Count, word)
			}
			return err
		}
		if sum.Skipped == 0 {
			sum.Reason = step.Reason
		}
		sum.Count, sum.Skipped = sum.Count+step.Count, sum.Skipped+step.Skipped
		sum.Incomplete, sum.More = sum.Incomplete || step.Incomplete, step.More
		if !step.More || f.Max != 0 {
			return t.printFound(word, sum)
		}
		f.Cursor = step.Next
	}
}

// printFound prints how many jobs were changed.
func (t *terminal) printFound(word string, c client.ChangedJobs) error {
	if t.json {
		err := t.out.line("{%q:%d,\"skipped\":%d,\"incomplete\":%t,\"more\":%t}", word, c.Count, c.Skipped, c.Incomplete, c.More)
		return errors.Join(err, incomplete(c))
	}
	line := fmt.Sprintf("%d %s", c.Count, word)
	if c.Skipped > 0 {
		line += fmt.Sprintf("; %d skipped: %s", c.Skipped, c.Reason)
	}
	if c.More {
		line += "; there may be more"
	}
	return errors.Join(t.out.line("%s", line), incomplete(c))
}

// incomplete is why a change of found jobs may have missed some, if it may: then the command
// fails, because a script must not take it for all of them.
func incomplete(c client.ChangedJobs) error {
	if c.Incomplete {
		return client.ErrIncomplete
	}
	return nil
}

func deleteCommand() *cobra.Command {
	c, s := newStep("delete", "delete jobs by their ids, or those that a header finds", "[ID...]", 0, "Deletes jobs in any state; or, with --where or --id-prefix, those of all topics that this finds.\nThese are gone for good, so it asks before, with their number.",
		"tarry delete --where order=5 --all", "token if")
	var filter filterFlags
	filter.register(c)
	var f foundFlags
	f.register(c)
	sure := c.yesFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(args) > 0 {
			if err := c.needs("no ID", append(append(filterNames, foundNames...), "yes")...); err != nil {
				return err
			}
			return s.each(ctx, t, c, args, deleteStep, t.deleteMany)
		}
		if err := c.needs("an ID", "token", "if-revision", "if-state"); err != nil {
			return err
		}
		found, err := f.found(filter.filter())
		if err != nil {
			return err
		}
		ask := func(ctx context.Context, t *terminal, _ []string) (string, error) {
			n, err := t.count(ctx, found)
			return fmt.Sprintf("Delete %s for good?", jobsOf(n, found.State)), err
		}
		if err := t.confirm(ctx, *sure || *f.dry, ask, args); err != nil {
			return err
		}
		return t.changeFound(ctx, "deleted", *f.dry, found, func(found client.Selection) (client.ChangedJobs, error) {
			return t.client.DeleteJobs(ctx, found)
		})
	})
}

func updateCommand() *cobra.Command {
	c, s := newStep("update", "change jobs that are not reserved, by their ids or a header", "[ID...]", 0, "Changes what is named of delayed, ready or dead jobs; the rest stays. Or, with --where or --id-prefix,\nof the jobs of all topics that this finds.",
		"tarry update --where order=5 --all --delay 2h", "due priority ttr-of-job attempts backoff headers push-url body if")
	var filter client.Filter
	whereFlag(c, "without ID: only jobs with this header, `name=value`; may be repeated", &filter.Headers)
	c.flags.StringVar(&filter.IDPrefix, "id-prefix", "", "without ID: only jobs whose id starts with this `text`")
	var f foundFlags
	f.register(c)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if len(args) > 0 {
			if err := c.needs("no ID", append(foundNames, "where", "id-prefix")...); err != nil {
				return err
			}
			return s.each(ctx, t, c, args, updateStep, func(ctx context.Context, ids []string) ([]client.ChangeResult, error) {
				updates := make([]client.JobUpdate, len(ids))
				for i, id := range ids {
					updates[i] = client.JobUpdate{ID: id, Update: s.update()}
				}
				return t.client.UpdateBatch(ctx, updates)
			})
		}
		if err := c.needs("an ID", "if-revision", "if-state"); err != nil {
			return err
		}
		if filter.IDPrefix == "" && len(filter.Headers) == 0 {
			return usagef("takes either an ID, or --where or --id-prefix for many jobs")
		}
		found, err := f.found(filter)
		if err != nil {
			return err
		}
		return t.changeFound(ctx, "updated", *f.dry, found, func(found client.Selection) (client.ChangedJobs, error) {
			return t.client.UpdateJobs(ctx, found, s.update())
		})
	})
}

// kickFound kicks the dead and delayed jobs that are found.
func (t *terminal) kickFound(ctx context.Context, dry bool, found client.Selection, toTopic string) error {
	return t.changeFound(ctx, "kicked", dry, found, func(found client.Selection) (client.ChangedJobs, error) {
		return t.client.KickJobs(ctx, found, toTopic)
	})
}
