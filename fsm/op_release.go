package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

// release makes a reserved job ready, delayed, or dead if its attempts are used up.
func (x *tx) release(op *jobpb.Release, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	to, err := x.giveBack(t, rec, op)
	r.State, r.DueMs, r.Revision = rec.state(to), rec.status.dueMS, rec.status.revision
	return err
}

// giveBack ends the reservation of a job, as op says, and returns the list that it is in
// then.
func (x *tx) giveBack(t *topic, rec *record, op *jobpb.Release) (to listKind, err error) {
	if op.Undelivered {
		t.refundToken(x.clock(), op.ReservedMs)
	}
	to = listReady
	delay := op.DelayMs
	switch {
	case !op.Undelivered && rec.exhausted():
		to = listDead
	case op.DelayMs > 0 && !op.Returned:
		to = listDelayed
	case op.Backoff && !op.Returned && !op.Undelivered:
		if delay, err = x.backoff(t, rec, op.Entropy, x.limits().ReleaseBackoff); err != nil {
			return to, err
		}
		if delay > 0 {
			to = listDelayed
		}
	}
	attempt := rec.status.attempts
	err = x.move(t, rec, listReserved, to, func(s *jobStatus) {
		s.release(op, delay)
		switch to {
		case listDead:
			if op.Returned || op.Reason == "" {
				s.reason = fmt.Sprintf("%s on attempt %d of %d", releaseWords(op), rec.status.attempts, rec.status.maxAttempts)
			}
			x.setDead(t, s)
		case listDelayed:
			s.dueMS = x.after(delay)
			s.setWaiting()
		default:
			s.setWaiting()
		}
		x.recordEvent(t, rec, jobpb.Event_RELEASED, to, attempt, releaseReason(op))
	})
	return to, err
}

// releaseReason returns the reason for the job's history.
func releaseReason(op *jobpb.Release) string {
	switch {
	case op.Undelivered && op.Reason == "":
		return "the consumer never saw it; the attempt does not count"
	case op.Returned:
		return releaseWords(op)
	}
	return op.Reason
}

// release changes what does not depend on where the job goes. delayMS is the requested
// delay.
func (s *jobStatus) release(op *jobpb.Release, delayMS int64) {
	if op.Undelivered {
		// As if it had not been handed out, except that the token stays used.
		s.attempts--
		s.reserves--
	}
	if op.Returned {
		return
	}
	if !op.Undelivered {
		s.releases++
	}
	s.setPriority(op.SetPriority, op.Priority)
	s.setReason(op.Reason)
	s.lastDelayMS = delayMS
}

func releaseWords(op *jobpb.Release) string {
	if op.Returned {
		return "the consumer's connection ended"
	}
	return "released"
}
