package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const topicDeleteText = `Deletes the jobs of a topic, reserved ones too, then its settings, and at last the topic with its
totals and its pause. They are gone for good, so it asks before, with the number of jobs. A consumer that works on a job of the topic can no longer
finish it. Finished jobs that the topic retains stay until their retention ends, and the topic
with them. It can be interrupted and run again. Producers and schedules that add to the topic make it anew: stop
them first.`

// topicDeletion is what tarry topic delete prints.
type topicDeletion struct {
	Topic    string `json:"topic"`
	Deleted  int    `json:"deleted"`
	Settings bool   `json:"settings"` // were deleted
}

func topicDeleteCommand() *cobra.Command {
	c := cli.NewCommand("delete", "delete a topic: its jobs and its settings", "TOPIC", topicDeleteText, "tarry topic delete mail", 1, 1)
	sure, dry := c.YesFlag(), dryFlag(c)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		counts, settings, err := topicToDelete(ctx, t, args[0])
		if err != nil {
			return err
		}
		n := int(counts.Delayed + counts.Ready + counts.Reserved + counts.Dead)
		if *dry {
			return printDry(t, "deleted", n, nil)
		}
		ask := func(context.Context, *cli.Terminal, []string) (string, error) {
			text := fmt.Sprintf("Delete %s with %s", args[0], cli.JobsOf(n, ""))
			if counts.Reserved > 0 {
				text += fmt.Sprintf(", of which %d are reserved", counts.Reserved)
			}
			if settings {
				text += ", and its settings"
			}
			return text + ", for good?", nil
		}
		if err := t.Confirm(ctx, *sure, ask, args); err != nil {
			return err
		}
		done, err := deleteTopic(ctx, t, args[0], settings)
		if err != nil {
			if done.Deleted > 0 {
				t.Notes.Line("%s deleted before this; run the same command again to go on", cli.JobsOf(done.Deleted, ""))
			}
			return err
		}
		if t.JSON {
			return t.PrintJSON(done)
		}
		return t.Out.Line("%s is deleted, with %s", done.Topic, cli.JobsOf(done.Deleted, ""))
	})
}

// topicToDelete returns the counts of a topic, and whether it has settings.
func topicToDelete(ctx context.Context, t *cli.Terminal, topic string) (counts client.Topic, settings bool, err error) {
	if counts, err = t.Client.Topics().Get(ctx, topic); err != nil {
		return counts, false, err
	}
	s, err := t.Client.Topics().Settings(ctx, topic)
	if err != nil {
		return counts, false, err
	}
	rows, err := (&settingFlags{s.Settings}).rows()
	settings = len(rows) > 0
	if err == nil && !settings && counts == (client.Topic{Name: topic}) {
		err = &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("topic %q has had no jobs, and has no settings", topic)}
	}
	return counts, settings, err
}

// deleteTopic deletes the jobs of a topic, its settings, and then the topic.
func deleteTopic(ctx context.Context, t *cli.Terminal, topic string, settings bool) (done topicDeletion, err error) {
	done.Topic = topic
	// Reserved jobs first: those that are released meanwhile are found in another state.
	if err := deleteReserved(ctx, t, topic, &done.Deleted); err != nil {
		return done, err
	}
	for _, state := range []client.State{client.StateDelayed, client.StateReady, client.StateDead} {
		for more := true; more; {
			swept, err := t.Client.Topics().Purge(ctx, topic, state, client.Sweep{})
			done.Deleted += swept.Count
			if err != nil {
				return done, err
			}
			more = swept.More
		}
	}
	if settings {
		_, err = t.Client.Topics().DeleteSettings(ctx, topic, client.AnyRevision)
		done.Settings = err == nil
	}
	if err != nil {
		return done, err
	}
	swept, err := t.Client.Topics().Drop(ctx, topic)
	done.Deleted += swept.Count
	if errors.Is(err, client.CodeInvalidArgument) || errors.Is(err, client.CodeNotApplied) {
		t.Notes.Line("%s has no jobs, and stays among the topics for an hour: the nodes are not all of a release, and the cluster not of a version, that drops it at once", topic)
		err = nil
	}
	return done, err
}

// deleteReserved deletes the reserved jobs of a topic, and counts them.
func deleteReserved(ctx context.Context, t *cli.Terminal, topic string, deleted *int) error {
	const page = 1000
	var refs []client.Ref
	flush := func() error {
		if len(refs) == 0 {
			return nil
		}
		failures, err := t.Client.DeleteBatch(ctx, refs)
		for _, f := range failures {
			switch {
			case f == nil:
				*deleted++
			case !errors.Is(f, client.CodeNotFound): // it has been finished meanwhile
				err = errors.Join(err, f)
			}
		}
		refs = refs[:0]
		return err
	}
	for j, err := range t.Client.Jobs(ctx, client.ListOptions{Topic: topic, State: "reserved", Page: page}) {
		if err != nil {
			return err
		}
		if refs = append(refs, client.Ref{ID: j.ID}); len(refs) == page {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
