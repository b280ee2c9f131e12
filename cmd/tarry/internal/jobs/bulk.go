package jobs

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// bulk is what a command does with many jobs.
type bulk struct {
	word     string                                // what is done with them: "kicked"
	matching func() (int, error)                   // how many are meant
	most     int                                   // of them; 0: all
	question func(n int) string                    // nil: it does not ask
	step     func(cursor string) (bulkStep, error) // one call, which goes on at the cursor
	also     []string                              // further members of the JSON: unchanged, skipped, incomplete
}

// bulkStep is what one call has done.
type bulkStep struct {
	client.ChangedJobs
	unchanged int
}

// sweep is the step of a call that does all by itself.
func sweep(call func() (client.Swept, error)) func(string) (bulkStep, error) {
	return func(string) (bulkStep, error) {
		s, err := call()
		return bulkStep{ChangedJobs: client.ChangedJobs{Count: s.Count, More: s.More}}, err
	}
}

// runBulk does it by as many calls as it takes, or only counts the jobs.
func runBulk(ctx context.Context, t *cli.Terminal, b bulk, dry, sure bool) error {
	count := func() (int, error) {
		n, err := b.matching()
		return cli.AtMost(n, b.most), err
	}
	if dry {
		n, err := count()
		return printDry(t, b.word, n, err)
	}
	if b.question != nil {
		ask := func(context.Context, *cli.Terminal, []string) (string, error) {
			n, err := count()
			return b.question(n), err
		}
		if err := t.Confirm(ctx, sure, ask, nil); err != nil {
			return err
		}
	}
	var sum bulkStep
	for {
		step, err := b.step(sum.Next)
		if err != nil {
			if sum.Count > 0 {
				t.Notes.Line("%d %s before this", sum.Count, b.word)
			}
			return err
		}
		if sum.Skipped == 0 {
			sum.Reason = step.Reason
		}
		sum.Count, sum.unchanged, sum.Skipped = sum.Count+step.Count, sum.unchanged+step.unchanged, sum.Skipped+step.Skipped
		sum.Incomplete, sum.More, sum.Next = sum.Incomplete || step.Incomplete, step.More, step.Next
		if sum.Next == "" || b.most != 0 {
			return printBulk(t, b, sum)
		}
	}
}

// printBulk prints how many jobs were changed. The command fails if some may have been missed, because a
// script must not take it for all of them.
func printBulk(t *cli.Terminal, b bulk, s bulkStep) (err error) {
	if s.Incomplete {
		err = client.ErrIncomplete
	}
	if t.JSON {
		also := ""
		for _, name := range b.also {
			also += fmt.Sprintf("%q:%v,", name, map[string]any{"unchanged": s.unchanged, "skipped": s.Skipped, "incomplete": s.Incomplete}[name])
		}
		return errors.Join(t.Out.Line("{%q:%d,%s\"more\":%t}", b.word, s.Count, also, s.More), err)
	}
	line := fmt.Sprintf("%d %s", s.Count, b.word)
	if s.unchanged > 0 {
		line += fmt.Sprintf("; %d are due then already", s.unchanged)
	}
	if s.Skipped > 0 {
		line += fmt.Sprintf("; %d skipped: %s", s.Skipped, s.Reason)
	}
	if s.More {
		line += "; there may be more"
	}
	return errors.Join(t.Out.Line("%s", line), err)
}

// countFound counts the jobs that are meant, up to the limit.
func countFound(ctx context.Context, t *cli.Terminal, f client.Selection) (n int, err error) {
	q := client.ListOptions{State: f.State, Filter: f.Filter, Page: 1000}
	for j, err := range t.Client.Jobs(ctx, q) {
		if errors.Is(err, client.ErrIncomplete) {
			t.Notes.Line("%v", err)
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

// matching counts the jobs of a topic that are in one of the states and pass the filter.
func matching(ctx context.Context, t *cli.Terminal, topic string, states []client.State, f client.Filter) (n int, err error) {
	if reflect.ValueOf(f).IsZero() {
		counts, err := t.Client.Topics().Get(ctx, topic)
		by := map[client.State]uint64{client.StateDelayed: counts.Delayed, client.StateReady: counts.Ready, client.StateReserved: counts.Reserved, client.StateDead: counts.Dead}
		for _, state := range states {
			n += int(by[state])
		}
		return n, err
	}
	for _, state := range states {
		for _, err := range t.Client.Jobs(ctx, client.ListOptions{Topic: topic, State: state, Filter: f, Page: 1000}) {
			if errors.Is(err, client.ErrIncomplete) {
				t.Notes.Line("%v", err)
				break
			}
			if err != nil {
				return 0, err
			}
			n++
		}
	}
	return n, nil
}

// dryFlag adds --dry-run.
func dryFlag(c *cli.Command) *bool {
	return c.Flags.Bool("dry-run", false, "only count the jobs, and change none")
}

// printDry prints how many jobs a sweep would change.
func printDry(t *cli.Terminal, word string, n int, err error) error {
	if err != nil {
		return err
	}
	if t.JSON {
		return t.Out.Line("{\"would_be_%s\":%d}", word, n)
	}
	return t.Out.Line("%d would be %s", n, word)
}
