package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
)

const deadText = `Groups the dead jobs of a topic, or of all topics, by their reason: the largest group first.
With --exact-reason it lists the topics that most dead jobs with one reason are in.`

func deadCommand() *cobra.Command {
	c := newCommand("dead", "group the dead jobs by reason", "[TOPIC]", deadText, "tarry dead --exact-reason 'no route'", 0, 1)
	var reason *string
	var most int
	c.flags.Func("exact-reason", "list the topics of the jobs with this `text` as their reason; \"\" for none", func(text string) error {
		reason = &text
		return nil
	})
	c.flags.IntVarP(&most, "max", "n", 0, "`number` of groups or topics to show, up to 1000; default: 100")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		if reason == nil {
			d, err := t.client.Topics().Dead(ctx, strings.Join(args, ""), most)
			if err != nil {
				return err
			}
			return t.printDead(d)
		}
		if len(args) > 0 {
			return usagef("--exact-reason lists all topics; leave out TOPIC")
		}
		d, err := t.client.Topics().DeadTopics(ctx, *reason, most)
		if err != nil {
			return err
		}
		return t.printDeadTopics(d)
	})
}

func (t *terminal) printDead(d client.DeadReasons) error {
	if t.json {
		return t.printJSON(d)
	}
	head := []string{"JOBS", "TOPICS", "EXAMPLE", "REASON"}
	if d.Topic != "" {
		head[1] = "FIRST DIED"
	}
	var rows [][]string
	for _, g := range d.Groups {
		second := count(g.Topics)
		if d.Topic != "" {
			second = t.when(g.FirstDiedAt)
		}
		rows = append(rows, []string{count(g.Jobs), second, g.Example, wholeReason(g.Reason)})
	}
	if err := t.table(head, rows); err != nil {
		return err
	}
	t.noteDead(d.More, d.Incomplete)
	if d.Topic != "" {
		return t.out.line("dead: %d", d.Jobs)
	}
	return t.out.line("dead: %d  reasons: %d", d.Jobs, d.Reasons)
}

func (t *terminal) printDeadTopics(d client.DeadTopics) error {
	if t.json {
		return t.printJSON(d)
	}
	var rows [][]string
	for _, g := range d.Groups {
		rows = append(rows, []string{g.Topic, count(g.Jobs), t.when(g.FirstDiedAt), g.Example})
	}
	if err := t.table([]string{"TOPIC", "JOBS", "FIRST DIED", "EXAMPLE"}, rows); err != nil {
		return err
	}
	t.noteDead(d.More, d.Incomplete)
	return t.out.line("dead with this reason: %d  topics: %d", d.Jobs, d.Topics)
}

// noteDead notes what a list of dead jobs does not show.
func (t *terminal) noteDead(more, incomplete bool) {
	switch {
	case incomplete:
		t.notes.line("there are more, and some of them may be larger than the last one here")
	case more:
		t.notes.line("there are more: see --max")
	}
}

// wholeReason is a reason as --exact-reason takes it.
func wholeReason(reason string) string {
	if reason == "" {
		return `""`
	}
	return reason
}

// onlyExactReason reports whether a filter has a whole reason and nothing else.
func onlyExactReason(f client.Filter) bool {
	return f.ExactReason != nil && f.IDPrefix == "" && f.Reason == "" && len(f.Headers) == 0 &&
		f.DueFrom.IsZero() && f.DueTo.IsZero() && f.DiedFrom.IsZero() && f.DiedTo.IsZero()
}

// deadWith counts the dead jobs of all topics with one reason.
func (t *terminal) deadWith(ctx context.Context, f client.Filter) (int, error) {
	d, err := t.client.Topics().DeadTopics(ctx, *f.ExactReason, 1)
	return int(d.Jobs), err
}
