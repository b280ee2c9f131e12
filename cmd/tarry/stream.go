package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/job"
)

func streamCommand() *cobra.Command {
	c := newCommand("stream", "print jobs as they become ready", "TOPIC...", "Prints jobs as they become ready, until it is stopped. At most as many as the credit\nsays are unfinished at one time; finish them, from anywhere, and the next come.",
		"tarry stream mail --credit 20 --finish", 0, job.MaxReserveTopics)
	var topics, ttr, heartbeat = new(list), &duration{positive: true}, &duration{positive: true}
	var credit, most int
	var finish, release bool
	var consumer string
	raw := c.rawFlag("print the bodies alone, byte for byte, and a newline after each")
	c.flags.VarP(topics, "topic", "t", "`name` of a topic to take from, like an argument TOPIC; several: --topic a --topic b")
	c.flags.IntVar(&credit, "credit", 1, "`number` of unfinished jobs at one time, 1 to 1000")
	c.flags.IntVarP(&most, "max", "n", 0, "`number` of jobs to stop after; default: go on for ever")
	c.flags.Var(ttr, "ttr", "`time` the reservations last; default: each job's own")
	c.flags.Var(heartbeat, "heartbeat", "`time` between signs of life on a silent stream, 1s to 5m; default: 15s")
	c.flags.StringVar(&consumer, "consumer", "", "`name` of the consumer, shown with its jobs and kept in their history")
	c.flags.BoolVar(&finish, "finish", false, "finish each job once it is printed")
	c.flags.BoolVar(&release, "release", false, "give unfinished jobs back when the connection ends")
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		topics.names = append(topics.names, args...)
		switch {
		case len(topics.names) == 0:
			return usagef("TOPIC is missing")
		case credit < 1:
			return usagef("--credit is %d; it takes 1 to 1000", credit)
		case most < 0:
			return usagef("--max is %d; it takes 1 or more", most)
		}
		o := client.StreamOptions{Topics: topics.names, Credit: credit, Max: most, TTR: ttr.d, Heartbeat: heartbeat.d, ReleaseOnClose: release, Consumer: consumer}
		for j, err := range t.client.Stream(ctx, o) {
			switch {
			case err == nil && *raw:
				err = t.printRaw([]client.Reserved{j}, true)
			case err == nil:
				err = t.printStreamed(&j)
			}
			if err == nil && finish {
				err = t.client.Finish(ctx, j.Ref())
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
func (t *terminal) printStreamed(j *client.Reserved) error {
	if t.json {
		return t.printJSON(j)
	}
	if hasLines(j.Bytes()) {
		return errors.Join(t.out.line("%s  %s  attempt %d", j.ID, j.Token, j.Attempts), t.out.text(j.Bytes()))
	}
	return t.out.line("%s  %s  attempt %d  %s", j.ID, j.Token, j.Attempts, whole(j.Bytes()))
}
