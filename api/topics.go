package api

import (
	"context"
	"strconv"

	"tarry/job"
	"tarry/job/jobpb"
)

// maxTopicsPage bounds one page of topics; it is the default as well.
const maxTopicsPage = 1000

func (s *server) topics(x *exchange) error {
	return s.pageOfTopics(x, s.Queue.Topics, x.json.topic)
}

// pageOfTopics answers with a page of what list gives; write adds the members of
// one topic.
func (s *server) pageOfTopics(x *exchange, list func(context.Context, string, int, bool) ([]*jobpb.Topic, error), write func(*jobpb.Topic)) error {
	query := x.r.URL.Query()
	after := query.Get("after")
	if after != "" {
		if err := job.CheckTopic("after", after); err != nil {
			return err
		}
	}
	page := int64(maxTopicsPage)
	if v := query.Get("max"); v != "" {
		var err error
		if page, err = strconv.ParseInt(v, 10, 64); err != nil {
			return job.Errorf(job.CodeInvalid, "max is %.40q; it takes a whole number", v)
		}
		if _, err := within("max", page, maxTopicsPage); err != nil {
			return err
		}
	}
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	topics, err := list(ctx, after, int(page), stale)
	if err != nil {
		return err
	}
	x.json.open()
	x.json.boolean("success", true)
	x.json.openList("topics")
	for _, t := range topics {
		x.json.open()
		write(t)
		x.json.shut()
	}
	x.json.shutList()
	if int64(len(topics)) == page {
		x.json.text("next", topics[len(topics)-1].Name)
	}
	x.json.shut()
	return nil
}

// topic adds the counts of a topic.
func (w *writer) topic(t *jobpb.Topic) {
	w.text("topic", t.Name)
	w.number("delayed", t.Delayed)
	w.number("ready", t.Ready)
	w.number("reserved", t.Reserved)
	w.number("dead", t.Dead)
	if t.Retained > 0 {
		w.number("retained", t.Retained)
	}
	w.instant("oldest_due_at", t.OldestDueMs)
	w.pause(t.PausedUntilMs)
	w.instant("throttled_until", t.ThrottledUntilMs)
	w.number("added", t.Added)
	w.number("finished", t.Finished)
	w.number("deleted", t.Deleted)
	w.number("timeouts", t.Timeouts)
	w.number("died", t.Died)
	if t.Expired != 0 {
		w.number("expired", t.Expired)
	}
	if t.Settings != nil {
		w.number("settings_revision", t.Settings.Revision)
	}
}

func (s *server) topic(x *exchange) error {
	name, err := x.pathTopic()
	if err != nil {
		return err
	}
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	t, err := s.Queue.Topic(ctx, name, stale)
	if err != nil {
		return err
	}
	x.json.open()
	x.json.boolean("success", true)
	x.json.topic(t)
	x.json.shut()
	return nil
}

// stats answers with the counts of all topics together.
func (s *server) stats(x *exchange) error {
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	t, err := s.Queue.Totals(ctx, stale)
	if err != nil {
		return err
	}
	x.json.open()
	x.json.boolean("success", true)
	x.json.number("topics", t.Topics)
	x.json.number("delayed", t.Delayed)
	x.json.number("ready", t.Ready)
	x.json.number("reserved", t.Reserved)
	x.json.number("dead", t.Dead)
	x.json.number("retained", t.Retained)
	x.json.shut()
	return nil
}
