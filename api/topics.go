package api

import (
	"tarry/api/wire"
	"tarry/job/jobpb"
)

func (s *server) topics(x *call) (r wire.TopicPage, err error) {
	page, full, err := findPage(x, s.reads.Topics)
	if full {
		r.Next = page[len(page)-1].Name
	}
	r.Topics = each(page, topicShown)
	return r, err
}

// topicShown returns the counts of a topic.
func topicShown(t *jobpb.Topic) wire.Topic {
	paused, until := pauseShown(t.PausedUntilMs)
	return wire.Topic{
		Topic: t.Name, Delayed: t.Delayed, Ready: t.Ready, Reserved: t.Reserved, Dead: t.Dead, Retained: t.Retained, OldestDueAt: wire.Time(t.OldestDueMs),
		Paused: paused, PausedUntil: until, ThrottledUntil: wire.Time(t.ThrottledUntilMs),
		Added: t.Added, Finished: t.Finished, Deleted: t.Deleted, Timeouts: t.Timeouts, Died: t.Died, Expired: t.Expired, SettingsRevision: t.Settings.GetRevision(),
	}
}

func (s *server) topic(x *call) (r wire.TopicReply, err error) {
	t, err := find(x, x.pathTopic, s.reads.Topic)
	if err == nil {
		r.Topic = topicShown(t)
	}
	return r, err
}

// stats responds with the sums over all topics.
func (s *server) stats(x *call) (r wire.Stats, err error) {
	stale, err := x.stale()
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	t, err := s.reads.Totals(ctx, stale)
	if err != nil {
		return r, err
	}
	return wire.Stats{Topics: t.Topics, Delayed: t.Delayed, Ready: t.Ready, Reserved: t.Reserved, Dead: t.Dead, Retained: t.Retained}, nil
}
