package api

import (
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

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
