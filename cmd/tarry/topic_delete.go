package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tarry/client"
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
	c := newCommand("delete", "delete a topic: its jobs and its settings", "TOPIC", topicDeleteText, "tarry topic delete mail", 1, 1)
	sure, dry := c.yesFlag(), c.dryFlag()
	return c.does(func(ctx context.Context, t *terminal, args []string) error {
		counts, settings, err := t.topicToDelete(ctx, args[0])
		if err != nil {
			return err
		}
		n := int(counts.Delayed + counts.Ready + counts.Reserved + counts.Dead)
		if *dry {
			return t.printDry("deleted", n, nil)
		}
		ask := func(context.Context, *terminal, []string) (string, error) {
			text := fmt.Sprintf("Delete %s with %s", args[0], jobsOf(n, ""))
			if counts.Reserved > 0 {
				text += fmt.Sprintf(", of which %d are reserved", counts.Reserved)
			}
			if settings {
				text += ", and its settings"
			}
			return text + ", for good?", nil
		}
		if err := t.confirm(ctx, *sure, ask, args); err != nil {
			return err
		}
		done, err := t.deleteTopic(ctx, args[0], settings)
		if err != nil {
			if done.Deleted > 0 {
				t.notes.line("%s deleted before this; run the same command again to go on", jobsOf(done.Deleted, ""))
			}
			return err
		}
		if t.json {
			return t.printJSON(done)
		}
		return t.out.line("%s is deleted, with %s", done.Topic, jobsOf(done.Deleted, ""))
	})
}

// topicToDelete returns the counts of a topic, and whether it has settings.
func (t *terminal) topicToDelete(ctx context.Context, topic string) (counts client.Topic, settings bool, err error) {
	if counts, err = t.client.Topics().Get(ctx, topic); err != nil {
		return counts, false, err
	}
	s, err := t.client.Topics().Settings(ctx, topic)
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
func (t *terminal) deleteTopic(ctx context.Context, topic string, settings bool) (done topicDeletion, err error) {
	done.Topic = topic
	// Reserved jobs first: those that are released meanwhile are found in another state.
	if err := t.deleteReserved(ctx, topic, &done.Deleted); err != nil {
		return done, err
	}
	for _, state := range []client.State{client.StateDelayed, client.StateReady, client.StateDead} {
		for more := true; more; {
			swept, err := t.client.Topics().Purge(ctx, topic, state, client.Sweep{})
			done.Deleted += swept.Count
			if err != nil {
				return done, err
			}
			more = swept.More
		}
	}
	if settings {
		_, err = t.client.Topics().DeleteSettings(ctx, topic, client.AnyRevision)
		done.Settings = err == nil
	}
	if err != nil {
		return done, err
	}
	swept, err := t.client.Topics().Drop(ctx, topic)
	done.Deleted += swept.Count
	if errors.Is(err, client.CodeInvalidArgument) || errors.Is(err, client.CodeNotApplied) {
		t.notes.line("%s has no jobs, and stays among the topics for an hour: the nodes are not all of a release, and the cluster not of a version, that drops it at once", topic)
		err = nil
	}
	return done, err
}

// deleteReserved deletes the reserved jobs of a topic, and counts them.
func (t *terminal) deleteReserved(ctx context.Context, topic string, deleted *int) error {
	const page = 1000
	var refs []client.Ref
	flush := func() error {
		if len(refs) == 0 {
			return nil
		}
		failures, err := t.client.DeleteBatch(ctx, refs)
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
	for j, err := range t.client.Jobs(ctx, client.ListOptions{Topic: topic, State: "reserved", Page: page}) {
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
