package api

import (
	"time"

	"tarry/api/wire"
	"tarry/internal/rates"
	"tarry/job"
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

// topicRates handles GET /v1/topics/{topic}/rates.
func (s *server) topicRates(x *call) (r wire.Rates, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	return x.rates(topic, s.Queue.Rates(topic))
}

// rates handles GET /v1/rates.
func (s *server) rates(x *call) (wire.Rates, error) { return x.rates("", s.Queue.TotalRates()) }

// rates returns a series, of all topics if topic is empty.
func (x *call) rates(topic string, series rates.Series) (r wire.Rates, err error) {
	if err := x.claim(answerOverhead + maxSampleBytes*int64(len(series.Samples))); err != nil {
		return r, err
	}
	r.Topic, r.Step = topic, wire.SecondsOf(rates.Step.Milliseconds())
	if len(series.Samples) > 0 {
		r.Start = wire.Time(series.Start.UnixMilli())
	}
	for e, counts := range []*[]uint64{&r.Added, &r.Delivered, &r.Finished, &r.Deleted, &r.Timeouts, &r.Died, &r.Expired} { // as in job.TopicEvents
		*counts = each(series.Samples, func(sample job.TopicEvents) uint64 { return sample[e] })
	}
	return r, nil
}

// maxSampleBytes is how many bytes the counts of a step take in a response, about.
const maxSampleBytes = int64(len(job.TopicEvents{})) * 8

// pauseTopic handles POST /v1/topics/{topic}/pause.
func (s *server) pauseTopic(x *call, q *wire.PauseRequest) (r wire.Pause, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	op, now := &jobpb.PauseTopic{Topic: topic, Create: true}, time.Now()
	if q.For.Set && q.Until.Set {
		return r, job.Invalid("for", "and until are both given; give one")
	}
	if q.Until.Set {
		if op.UntilMs, err = q.Until.Millis("until", now); err == nil && op.UntilMs <= now.UnixMilli() {
			err = job.Invalid("until", "is %.60s, which is over; it must be ahead, and a pause is ended by resume", q.Until.Text)
		}
	}
	if q.For.Set && err == nil {
		if op.PauseMs, err = job.Millis("for", q.For.V, job.MaxDelay); err == nil && op.PauseMs == 0 {
			err = job.Invalid("for", "is 0 s; it must be at least 0.001 s; a pause is ended by resume")
		}
	}
	if err != nil {
		return r, err
	}
	op.Endless = !q.Until.Set && !q.For.Set
	return s.paused(x, op)
}

// resumeTopic handles POST /v1/topics/{topic}/resume.
func (s *server) resumeTopic(x *call) (r wire.Pause, err error) {
	topic, err := x.pathTopic()
	if err != nil {
		return r, err
	}
	return s.paused(x, &jobpb.PauseTopic{Topic: topic})
}

func (s *server) paused(x *call, op *jobpb.PauseTopic) (wire.Pause, error) {
	done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: op}})
	paused, until := pauseShown(done.GetDueMs())
	return wire.Pause{Topic: op.Topic, Paused: paused, PausedUntil: until}, err
}

// pauseShown reports whether a topic is paused, and until when if the pause has an end.
func pauseShown(untilMS int64) (paused bool, until wire.Time) {
	if untilMS == job.NeverMS {
		return true, 0
	}
	return untilMS != 0, wire.Time(untilMS)
}
