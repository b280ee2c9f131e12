package jobs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func StreamCommand() *cobra.Command {
	c := cli.NewCommand("stream", "print jobs as they become ready", "TOPIC...", "Prints jobs as they become ready, until it is stopped. At most as many as the credit\nsays are unfinished at one time; finish them, from anywhere, and the next come.",
		"tarry stream mail --credit 20 --finish", 0, job.MaxReserveTopics)
	var topics, ttr, heartbeat = new(list), &cli.Duration{Positive: true}, &cli.Duration{Positive: true}
	var credit, most int
	var finish, release bool
	var consumer string
	raw := c.RawFlag("print the bodies alone, byte for byte, and a newline after each")
	c.Flags.VarP(topics, "topic", "t", "`name` of a topic to take from, like an argument TOPIC; several: --topic a --topic b")
	c.Flags.IntVar(&credit, "credit", 1, "`number` of unfinished jobs at one time, 1 to 1000")
	c.Flags.IntVarP(&most, "max", "n", 0, "`number` of jobs to stop after; default: go on for ever")
	c.Flags.Var(ttr, "ttr", "`time` the reservations last; default: each job's own")
	c.Flags.Var(heartbeat, "heartbeat", "`time` between signs of life on a silent stream, 1s to 5m; default: 15s")
	c.Flags.StringVar(&consumer, "consumer", "", "`name` of the consumer, shown with its jobs and kept in their history")
	c.Flags.BoolVar(&finish, "finish", false, "finish each job once it is printed")
	c.Flags.BoolVar(&release, "release", false, "give unfinished jobs back when the connection ends")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		topics.names = append(topics.names, args...)
		switch {
		case len(topics.names) == 0:
			return cli.Usagef("TOPIC is missing")
		case credit < 1:
			return cli.Usagef("--credit is %d; it takes 1 to 1000", credit)
		case most < 0:
			return cli.Usagef("--max is %d; it takes 1 or more", most)
		}
		o := client.StreamOptions{Topics: topics.names, Credit: credit, Max: most, TTR: ttr.Value, Heartbeat: heartbeat.Value, ReleaseOnClose: release, Consumer: consumer}
		for j, err := range t.Client.Stream(ctx, o) {
			switch {
			case err == nil && *raw:
				err = printRaw(t, []client.Reserved{j}, true)
			case err == nil:
				err = printStreamed(t, &j)
			}
			if err == nil && finish {
				err = t.Client.Finish(ctx, j.Ref())
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// printStreamed prints one job on a line of its own: a table would have to know
// those to come.
func printStreamed(t *cli.Terminal, j *client.Reserved) error {
	if t.JSON {
		return t.PrintJSON(j)
	}
	if cli.HasLines(j.Bytes()) {
		return errors.Join(t.Out.Line("%s  %s  attempt %d", j.ID, j.Token, j.Attempts), t.Out.Text(j.Bytes()))
	}
	return t.Out.Line("%s  %s  attempt %d  %s", j.ID, j.Token, j.Attempts, cli.Whole(j.Bytes()))
}
