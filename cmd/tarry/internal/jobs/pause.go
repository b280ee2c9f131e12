package jobs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func PauseCommand() *cobra.Command {
	c := cli.NewCommand("pause", "hold the jobs of a topic back", "TOPIC", "Pauses a topic: its ready jobs are not reserved for a while, until a time, or until it is resumed.", "tarry pause mail --for 10m", 1, 1)
	var length cli.Duration
	var until cli.Instant
	c.Flags.Var(&length, "for", "duration of the pause, a `time` such as 30s or 10m; default: until it is resumed")
	c.Flags.Var(&until, "until", "`timestamp` at which the pause ends, such as 2030-01-31T12:00:00Z")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		switch {
		case length.Given && !until.Time.IsZero():
			return cli.Usagef("--for and --until are both given; give one")
		case length.Given && length.Value == 0:
			return cli.Usagef("--for is 0; a pause is ended by tarry resume")
		case !until.Time.IsZero():
			return printPause(t, args[0], func() (client.Pause, error) { return t.Client.Topics().PauseUntil(ctx, args[0], until.Time) })
		}
		return printPause(t, args[0], func() (client.Pause, error) { return t.Client.Topics().Pause(ctx, args[0], length.Value) })
	})
}

func ResumeCommand() *cobra.Command {
	c := cli.NewCommand("resume", "end the pause of a topic", "TOPIC", "Ends the pause of a topic.", "tarry resume mail", 1, 1)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		return printPause(t, args[0], func() (client.Pause, error) { return t.Client.Topics().Resume(ctx, args[0]) })
	})
}

func printPause(t *cli.Terminal, topic string, do func() (client.Pause, error)) error {
	p, err := do()
	if err != nil {
		return err
	}
	if t.JSON {
		return t.PrintJSON(p)
	}
	return t.Out.Line("%s is %s", topic, pauseWords(t, p.Paused, p.Until))
}

func pauseWords(t *cli.Terminal, paused bool, until time.Time) string {
	switch {
	case !paused:
		return "not paused"
	case until.IsZero():
		return "paused"
	default:
		return "paused; ends " + t.When(until)
	}
}
