package api

import (
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

type pauseRequest struct {
	For   opt[float64] `json:"for"`
	Until timestamp    `json:"until"`
}

// pauseTopic handles POST /v1/topics/{topic}/pause.
func (s *server) pauseTopic(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	var q pauseRequest
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	op, now := &jobpb.PauseTopic{Topic: topic, Create: true}, time.Now()
	if q.For.set && q.Until.set {
		return job.Invalid("for", "and until are both given; give one")
	}
	if q.Until.set {
		if op.UntilMs, err = q.Until.millis("until", now); err == nil && op.UntilMs <= now.UnixMilli() {
			err = job.Invalid("until", "is %.60s, which is over; it must be ahead, and a pause is ended by resume", q.Until.text)
		}
	}
	if q.For.set && err == nil {
		if op.PauseMs, err = job.Millis("for", q.For.v, job.MaxDelay); err == nil && op.PauseMs == 0 {
			err = job.Invalid("for", "is 0 s; it must be at least 0.001 s; a pause is ended by resume")
		}
	}
	if err != nil {
		return err
	}
	op.Endless = !q.Until.set && !q.For.set
	return s.paused(x, op)
}

// resumeTopic handles POST /v1/topics/{topic}/resume.
func (s *server) resumeTopic(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	return s.paused(x, &jobpb.PauseTopic{Topic: topic})
}

func (s *server) paused(x *call, op *jobpb.PauseTopic) error {
	return s.apply(x, &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: op}}, func(r *jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("topic", op.Topic)
		x.json.pause(r.DueMs)
	})
}

// pause adds whether a topic is paused, and until when if the pause has an end.
func (w *writer) pause(untilMS int64) {
	w.boolean("paused", untilMS != 0)
	if untilMS != job.NeverMS {
		w.timestamp("paused_until", untilMS)
	}
}
