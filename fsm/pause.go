package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

const maxPauseMS = int64(job.MaxPause / 1e6)

// pauseTopic hides a topic's ready jobs from Reserve until an Advance ends the
// pause, or at once shows them again.
func (x *tx) pauseTopic(op *jobpb.PauseTopic, r *jobpb.Result) error {
	if op.PauseMs < 0 || op.PauseMs > maxPauseMS {
		return x.refuse(r, jobpb.Code_INVALID, "pause_ms is %d; it must be between 0 (resume) and %d", op.PauseMs, maxPauseMS)
	}
	t := x.m.topics[op.Topic]
	if t == nil && !op.Create {
		return x.refuse(r, jobpb.Code_NOT_FOUND, "topic %.40q does not exist; a topic begins with its first job", op.Topic)
	}
	if t == nil {
		if err := job.CheckTopic("topic", op.Topic); err != nil {
			return x.refuse(r, jobpb.Code_INVALID, "%s", err)
		}
		if x.topicsAtLimit() {
			return x.refuseTopic(op.Topic, r)
		}
		t = x.newTopic(op.Topic)
		t.emptySince = x.clock()
	}
	t.pauses++
	t.resume()
	if op.PauseMs > 0 {
		t.pausedUntil, t.pauseMS = x.clock()+op.PauseMs, op.PauseMs
	}
	x.touch(t)
	return nil
}

// resume ends a pause, if there is one.
func (t *topic) resume() { t.pausedUntil, t.pauseMS = 0, 0 }
