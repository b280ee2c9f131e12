package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// pauseTopic pauses a topic, so that Reserve skips it until an Advance ends the pause, or
// ends its pause.
func (x *tx) pauseTopic(op *jobpb.PauseTopic, r *jobpb.Result) error {
	if err := x.limits().CheckPauseEnd(op.UntilMs, x.clock()); err != nil {
		return x.refuseInvalid(err, r)
	}
	t := x.m.topics[op.Topic]
	if t == nil && !op.Create {
		return x.refuse(r, jobpb.Code_NOT_FOUND, "topic %.40q does not exist; a topic begins with its first job", op.Topic)
	}
	if t == nil {
		if x.topicsAtLimit() {
			return x.refuseTopic(op.Topic, r)
		}
		if !x.fits(x.m.namespaceOf(op.Topic), growth{topics: 1}, r) {
			return nil
		}
		t = x.newTopic(op.Topic)
		x.emptied(t)
	}
	t.Pauses++
	t.resume()
	switch pause := max(op.PauseMs, op.UntilMs-x.clock()); {
	case op.Endless:
		t.PausedUntil, t.PauseMS = job.NeverMS, job.NeverMS
	case pause > 0:
		t.PausedUntil, t.PauseMS = max(x.after(op.PauseMs), op.UntilMs), pause
	}
	r.DueMs = t.PausedUntil
	x.touch(t)
	return nil
}

// resume ends the pause, if any.
func (t *topic) resume() { t.PausedUntil, t.PauseMS = 0, 0 }
