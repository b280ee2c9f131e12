package api

import (
	"context"

	"tarry/job/jobpb"
)

func (s *server) topics(x *call) error {
	return s.pageOfTopics(x, s.reads.Topics, x.json.topic)
}

// pageOfTopics responds with a page of topics from list. write adds the fields of one topic.
func (s *server) pageOfTopics(x *call, list func(context.Context, string, int, bool) ([]*jobpb.Topic, error), write func(*jobpb.Topic)) error {
	page, full, err := findPage(x, list)
	if err != nil {
		return err
	}
	next := ""
	if full {
		next = page[len(page)-1].Name
	}
	answerPage(x, "topics", page, write, next)
	return nil
}

// topic adds the counts of a topic.
func (w *writer) topic(t *jobpb.Topic) {
	w.text("topic", t.Name)
	w.number("delayed", t.Delayed)
	w.number("ready", t.Ready)
	w.number("reserved", t.Reserved)
	w.number("dead", t.Dead)
	w.numberUnlessZero("retained", t.Retained)
	w.timestamp("oldest_due_at", t.OldestDueMs)
	w.pause(t.PausedUntilMs)
	w.timestamp("throttled_until", t.ThrottledUntilMs)
	w.number("added", t.Added)
	w.number("finished", t.Finished)
	w.number("deleted", t.Deleted)
	w.number("timeouts", t.Timeouts)
	w.number("died", t.Died)
	w.numberUnlessZero("expired", t.Expired)
	if t.Settings != nil {
		w.number("settings_revision", t.Settings.Revision)
	}
}

func (s *server) topic(x *call) error {
	t, err := find(x, x.pathTopic, s.reads.Topic)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.topic(t)
	x.json.endObject()
	return nil
}

// stats responds with the sums over all topics.
func (s *server) stats(x *call) error {
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	t, err := s.reads.Totals(ctx, stale)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.number("topics", t.Topics)
	x.json.number("delayed", t.Delayed)
	x.json.number("ready", t.Ready)
	x.json.number("reserved", t.Reserved)
	x.json.number("dead", t.Dead)
	x.json.number("retained", t.Retained)
	x.json.endObject()
	return nil
}
