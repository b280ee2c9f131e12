package jobs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const forecastText = `Counts the delayed jobs of a topic, or of all topics, by when they are due. Steps begin as in UTC.
With --topics it lists the topics of which most jobs are due in the first step.`

// forecastStep is a length that --step names, with how many of them are shown and how the
// instants at which they begin are written.
type forecastStep struct {
	name   string
	length time.Duration
	steps  int
	format string
}

var forecastSteps = []forecastStep{
	{"minute", time.Minute, 60, "15:04"},
	{"hour", time.Hour, 24, "Mon 15:04"},
	{"day", 24 * time.Hour, 30, "Mon 2006-01-02 15:04"},
}

func ForecastCommand() *cobra.Command {
	c := cli.NewCommand("forecast", "count the delayed jobs by when they are due", "[TOPIC]", forecastText, "tarry forecast mail --step day --steps 14", 0, 1)
	var step string
	var start cli.Instant
	var s client.ForecastSteps
	var most int
	var topics bool
	c.Flags.StringVar(&step, "step", "hour", "`length` of a step: minute, hour or day")
	c.Flags.IntVar(&s.Steps, "steps", 0, "`number` of steps; default: 60 minutes, 24 hours or 30 days")
	c.Flags.Var(&start, "start", "`timestamp` at which the first step begins, such as 2030-01-31T12:00:00Z; default: the present minute, hour or day")
	c.Flags.BoolVar(&topics, "topics", false, "list topics by how many of their jobs are due in one step")
	c.Flags.IntVarP(&most, "max", "n", 0, "`number` of topics to list with --topics; default: 10")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		i := slices.IndexFunc(forecastSteps, func(known forecastStep) bool { return known.name == step })
		if i < 0 {
			return cli.Usagef("--step: must be minute, hour or day, got %q", step)
		}
		s.Start, s.Step = start.Time, forecastSteps[i].length
		if topics {
			if len(args) > 0 || c.Given("steps") != "" {
				return cli.Usagef("--topics lists all topics in one step; leave out TOPIC and --steps")
			}
			due, err := t.Client.Topics().ForecastTopics(ctx, s, most)
			if err != nil {
				return err
			}
			return printDueTopics(t, due)
		}
		if err := c.Needs("--topics", "max"); err != nil {
			return err
		}
		s.Steps = cmp.Or(s.Steps, forecastSteps[i].steps)
		f, err := t.Client.Topics().Forecast(ctx, strings.Join(args, ""), s)
		if err != nil {
			return err
		}
		return printForecast(t, f, forecastSteps[i].format)
	})
}

func printForecast(t *cli.Terminal, f client.Forecast, format string) error {
	if t.JSON {
		return t.PrintJSON(f)
	}
	most := slices.Max(append(f.Jobs, 1))
	var rows [][]string
	for i, n := range f.Jobs {
		at := f.Start.Add(time.Duration(i) * f.Step.Duration)
		cell := at.UTC().Format(format)
		if t.Absolute {
			cell = cli.Timestamp(at)
		}
		rows = append(rows, []string{cell, cli.Count(n), bar(n, most)})
	}
	if err := t.Table([]string{"FROM (UTC)", "JOBS", ""}, rows); err != nil {
		return err
	}
	return t.Out.Line("due before: %d  due after: %d  overdue: %d", f.Before, f.After, f.Overdue)
}

func printDueTopics(t *cli.Terminal, due client.DueTopics) error {
	if t.JSON {
		return t.PrintJSON(due)
	}
	var rows [][]string
	for _, d := range due.Topics {
		rows = append(rows, []string{d.Topic, cli.Count(d.Jobs), bar(d.Jobs, due.Topics[0].Jobs)}) // the largest comes first
	}
	if err := t.Table([]string{"TOPIC", "JOBS", ""}, rows); err != nil {
		return err
	}
	end := due.Start.Add(due.Step.Duration)
	return t.Out.Line("due from %s until %s in all topics: %d", cli.Timestamp(due.Start), cli.Timestamp(end), due.Jobs)
}

// barLength is how long the longest bar is, in characters.
const barLength = 40

// bar draws a number as a bar; that of most is the longest. Any number but 0 shows.
func bar(n, most uint64) string {
	if n == 0 {
		return ""
	}
	length := int(float64(n) / float64(most) * barLength)
	return strings.Repeat("█", max(length, 1))
}
