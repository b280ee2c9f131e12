package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
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

func forecastCommand() *cobra.Command {
	c := newCommand("forecast", "count the delayed jobs by when they are due", "[TOPIC]", forecastText, "tarry forecast mail --step day --steps 14", 0, 1)
	var step string
	var start instant
	var s client.ForecastSteps
	var most int
	var topics bool
	c.flags.StringVar(&step, "step", "hour", "`length` of a step: minute, hour or day")
	c.flags.IntVar(&s.Steps, "steps", 0, "`number` of steps; default: 60 minutes, 24 hours or 30 days")
	c.flags.Var(&start, "start", "`timestamp` at which the first step begins, such as 2030-01-31T12:00:00Z; default: the present minute, hour or day")
	c.flags.BoolVar(&topics, "topics", false, "list topics by how many of their jobs are due in one step")
	c.flags.IntVarP(&most, "max", "n", 0, "`number` of topics to list with --topics; default: 10")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		i := slices.IndexFunc(forecastSteps, func(known forecastStep) bool { return known.name == step })
		if i < 0 {
			return usagef("--step: must be minute, hour or day, got %q", step)
		}
		s.Start, s.Step = start.t, forecastSteps[i].length
		if topics {
			if len(args) > 0 || c.given("steps") != "" {
				return usagef("--topics lists all topics in one step; leave out TOPIC and --steps")
			}
			due, err := t.client.Topics().ForecastTopics(ctx, s, most)
			if err != nil {
				return err
			}
			return t.printDueTopics(due)
		}
		if err := c.needs("--topics", "max"); err != nil {
			return err
		}
		s.Steps = cmp.Or(s.Steps, forecastSteps[i].steps)
		f, err := t.client.Topics().Forecast(ctx, strings.Join(args, ""), s)
		if err != nil {
			return err
		}
		return t.printForecast(f, forecastSteps[i].format)
	})
}

func (t *terminal) printForecast(f client.Forecast, format string) error {
	if t.json {
		return t.printJSON(f)
	}
	most := slices.Max(append(f.Jobs, 1))
	var rows [][]string
	for i, n := range f.Jobs {
		at := f.Start.Add(time.Duration(i) * f.Step.Duration)
		cell := at.UTC().Format(format)
		if t.absolute {
			cell = timestamp(at)
		}
		rows = append(rows, []string{cell, count(n), bar(n, most)})
	}
	if err := t.table([]string{"FROM (UTC)", "JOBS", ""}, rows); err != nil {
		return err
	}
	return t.out.line("due before: %d  due after: %d  overdue: %d", f.Before, f.After, f.Overdue)
}

func (t *terminal) printDueTopics(due client.DueTopics) error {
	if t.json {
		return t.printJSON(due)
	}
	var rows [][]string
	for _, d := range due.Topics {
		rows = append(rows, []string{d.Topic, count(d.Jobs), bar(d.Jobs, due.Topics[0].Jobs)}) // the largest comes first
	}
	if err := t.table([]string{"TOPIC", "JOBS", ""}, rows); err != nil {
		return err
	}
	end := due.Start.Add(due.Step.Duration)
	return t.out.line("due from %s until %s in all topics: %d", timestamp(due.Start), timestamp(end), due.Jobs)
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
