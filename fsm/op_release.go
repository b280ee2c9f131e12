package fsm

import (
	"fmt"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// release makes a reserved job ready, delayed, or dead if its attempts are used up.
func (x *tx) release(op *jobpb.Release, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	to, err := x.giveBack(t, rec, op)
	r.State, r.DueMs, r.Revision = rec.State(to), rec.Status.DueMS, rec.Status.Revision
	return err
}

// giveBack ends the reservation of a job, as op says, and returns the list that it is in
// then.
func (x *tx) giveBack(t *topic, rec *record.Job, op *jobpb.Release) (to record.List, err error) {
	if op.Undelivered {
		t.refundToken(x.clock(), op.ReservedMs)
	}
	to = record.ListReady
	delay := op.DelayMs
	switch {
	case !op.Undelivered && rec.Exhausted():
		to = record.ListDead
	case op.DelayMs > 0 && !op.Returned:
		to = record.ListDelayed
	case op.Backoff && !op.Returned && !op.Undelivered:
		if delay, err = x.backoff(t, rec, op.Entropy, x.limits().ReleaseBackoff); err != nil {
			return to, err
		}
		if delay > 0 {
			to = record.ListDelayed
		}
	}
	attempt := rec.Status.Attempts
	err = x.move(t, rec, record.ListReserved, to, func(s *record.Status) {
		release(s, op, delay)
		switch to {
		case record.ListDead:
			if op.Returned || op.Reason == "" {
				s.Reason = fmt.Sprintf("%s on attempt %d of %d", releaseWords(op), rec.Status.Attempts, rec.Status.MaxAttempts)
			}
			x.setDead(t, s)
		case record.ListDelayed:
			s.DueMS = x.after(delay)
			s.SetWaiting()
		default:
			s.SetWaiting()
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

// release changes what does not depend on where the job goes. DelayMS is the requested
// delay.
func release(s *record.Status, op *jobpb.Release, delayMS int64) {
	if op.Undelivered {
		// As if it had not been handed out, except that the token stays used.
		s.Attempts--
		s.Reserves--
	}
	if op.Returned {
		return
	}
	if !op.Undelivered {
		s.Releases++
	}
	s.SetPriority(op.SetPriority, op.Priority)
	s.SetReason(op.Reason)
	s.LastDelayMS = delayMS
}

func releaseWords(op *jobpb.Release) string {
	if op.Returned {
		return "the consumer's connection ended"
	}
	return "released"
}
