package jobs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const deadText = `Groups the dead jobs of a topic, or of all topics, by their reason: the largest group first.
With --exact-reason it lists the topics that most dead jobs with one reason are in.`

func DeadCommand() *cobra.Command {
	c := cli.NewCommand("dead", "group the dead jobs by reason", "[TOPIC]", deadText, "tarry dead --exact-reason 'no route'", 0, 1)
	var reason *string
	var most int
	c.Flags.Func("exact-reason", "list the topics of the jobs with this `text` as their reason; \"\" for none", func(text string) error {
		reason = &text
		return nil
	})
	c.Flags.IntVarP(&most, "max", "n", 0, "`number` of groups or topics to show, up to 1000; default: 100")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if reason == nil {
			d, err := t.Client.Topics().Dead(ctx, strings.Join(args, ""), most)
			if err != nil {
				return err
			}
			return printDead(t, d)
		}
		if len(args) > 0 {
			return cli.Usagef("--exact-reason lists all topics; leave out TOPIC")
		}
		d, err := t.Client.Topics().DeadTopics(ctx, *reason, most)
		if err != nil {
			return err
		}
		return printDeadTopics(t, d)
	})
}

func printDead(t *cli.Terminal, d client.DeadReasons) error {
	if t.JSON {
		return t.PrintJSON(d)
	}
	head := []string{"JOBS", "TOPICS", "EXAMPLE", "REASON"}
	if d.Topic != "" {
		head[1] = "FIRST DIED"
	}
	var rows [][]string
	for _, g := range d.Groups {
		second := cli.Count(g.Topics)
		if d.Topic != "" {
			second = t.When(g.FirstDiedAt)
		}
		rows = append(rows, []string{cli.Count(g.Jobs), second, g.Example, wholeReason(g.Reason)})
	}
	if err := t.Table(head, rows); err != nil {
		return err
	}
	noteDead(t, d.More, d.Incomplete)
	if d.Topic != "" {
		return t.Out.Line("dead: %d", d.Jobs)
	}
	return t.Out.Line("dead: %d  reasons: %d", d.Jobs, d.Reasons)
}

func printDeadTopics(t *cli.Terminal, d client.DeadTopics) error {
	if t.JSON {
		return t.PrintJSON(d)
	}
	var rows [][]string
	for _, g := range d.Groups {
		rows = append(rows, []string{g.Topic, cli.Count(g.Jobs), t.When(g.FirstDiedAt), g.Example})
	}
	if err := t.Table([]string{"TOPIC", "JOBS", "FIRST DIED", "EXAMPLE"}, rows); err != nil {
		return err
	}
	noteDead(t, d.More, d.Incomplete)
	return t.Out.Line("dead with this reason: %d  topics: %d", d.Jobs, d.Topics)
}

// noteDead notes what a list of dead jobs does not show.
func noteDead(t *cli.Terminal, more, incomplete bool) {
	switch {
	case incomplete:
		t.Notes.Line("there are more, and some of them may be larger than the last one here")
	case more:
		t.Notes.Line("there are more: see --max")
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
func deadWith(ctx context.Context, t *cli.Terminal, f client.Filter) (int, error) {
	d, err := t.Client.Topics().DeadTopics(ctx, *f.ExactReason, 1)
	return int(d.Jobs), err
}
