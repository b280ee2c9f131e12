package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// pauseTopic hides a topic's ready jobs from Reserve until an Advance ends the
// pause, if it has an end, or at once shows them again.
func (x *tx) pauseTopic(op *jobpb.PauseTopic, r *jobpb.Result) error {
	if err := x.checkPause(op); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	t := x.m.topics[op.Topic]
	if t == nil && !op.Create {
		return x.refuse(r, jobpb.Code_NOT_FOUND, "topic %.40q does not exist; a topic begins with its first job", op.Topic)
	}
	if t == nil {
		if err := x.limits().CheckTopic("topic", op.Topic); err != nil {
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
	switch pause := max(op.PauseMs, op.UntilMs-x.clock()); {
	case op.Endless:
		t.pausedUntil, t.pauseMS = job.NeverMS, job.NeverMS
	case pause > 0:
		t.pausedUntil, t.pauseMS = x.clock()+pause, pause
	}
	r.DueMs = t.pausedUntil
	x.touch(t)
	return nil
}

func (x *tx) checkPause(op *jobpb.PauseTopic) error {
	switch {
	case op.PauseMs < 0 || op.PauseMs > x.limits().MaxPause.Milliseconds():
		return job.Errorf(job.CodeInvalid, "pause_ms is %d; it must be between 0 (resume) and %d", op.PauseMs, x.limits().MaxPause.Milliseconds())
	case op.UntilMs < 0 || op.UntilMs > x.clock()+x.limits().MaxPause.Milliseconds():
		return job.Errorf(job.CodeInvalid, "until_ms is %d; it must be at most %d ms ahead", op.UntilMs, x.limits().MaxPause.Milliseconds())
	case op.PauseMs != 0 && op.UntilMs != 0 || op.Endless && op.PauseMs+op.UntilMs != 0:
		return job.Errorf(job.CodeInvalid, "a pause has one end: give pause_ms, until_ms or endless")
	}
	return nil
}

// resume ends a pause, if there is one.
func (t *topic) resume() { t.pausedUntil, t.pauseMS = 0, 0 }
