package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
)

func pauseCommand() *cobra.Command {
	c := newCommand("pause", "hold the jobs of a topic back", "TOPIC", "Pauses a topic: its ready jobs are not reserved for a while, until a time, or until it is resumed.", "tarry pause mail --for 10m", 1, 1)
	var length duration
	var until instant
	c.flags.Var(&length, "for", "duration of the pause, a `time` such as 30s or 10m; default: until it is resumed")
	c.flags.Var(&until, "until", "`timestamp` at which the pause ends, such as 2030-01-31T12:00:00Z")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		switch {
		case length.set && !until.t.IsZero():
			return usagef("--for and --until are both given; give one")
		case length.set && length.d == 0:
			return usagef("--for is 0; a pause is ended by tarry resume")
		case !until.t.IsZero():
			return t.printPause(args[0], func() (client.Pause, error) { return t.client.Topics().PauseUntil(ctx, args[0], until.t) })
		}
		return t.printPause(args[0], func() (client.Pause, error) { return t.client.Topics().Pause(ctx, args[0], length.d) })
	})
}

func resumeCommand() *cobra.Command {
	c := newCommand("resume", "end the pause of a topic", "TOPIC", "Ends the pause of a topic.", "tarry resume mail", 1, 1)
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		return t.printPause(args[0], func() (client.Pause, error) { return t.client.Topics().Resume(ctx, args[0]) })
	})
}

func (t *terminal) printPause(topic string, do func() (client.Pause, error)) error {
	p, err := do()
	if err != nil {
		return err
	}
	if t.json {
		return t.printJSON(p)
	}
	return t.out.line("%s is %s", topic, t.pauseWords(p.Paused, p.Until))
}

func (t *terminal) pauseWords(paused bool, until time.Time) string {
	switch {
	case !paused:
		return "not paused"
	case until.IsZero():
		return "paused"
	default:
		return "paused; ends " + t.when(until)
	}
}
