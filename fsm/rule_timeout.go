package fsm

import (
	"fmt"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// overrun is the reason of a job whose reservation expired.
const overrun = "time to run exceeded"

// timeOut ends a reservation that has expired.
func (x *tx) timeOut(t *topic, seq, entropy uint64) error {
	rec, err := x.jobIn(t, record.ListReserved, seq, false)
	if err != nil {
		return err
	}
	t.Timeouts++
	to, wait := record.ListDead, int64(0)
	if !rec.Exhausted() {
		if wait, err = x.backoff(t, rec, entropy, nil); err != nil { // it has waited for its time to run
			return err
		}
		to = record.ListReady
		if wait > 0 {
			to = record.ListDelayed
		}
	}
	x.timeouts = append(x.timeouts, job.Timeout{
		Seq: rec.Seq, Generation: rec.Status.Generation, AtMS: rec.Status.ReservedUntilMS(), State: to.State(rec.Status.Phase),
	})
	return x.move(t, rec, record.ListReserved, to, func(s *record.Status) {
		s.Timeouts++
		s.TimedOut = true
		s.Reason = overrun
		if to != record.ListDead {
			s.SetWaiting()
		}
		switch to {
		case record.ListDelayed:
			s.DueMS, s.LastDelayMS = x.clock()+wait, wait
		case record.ListDead:
			s.Reason = fmt.Sprintf("%s on attempt %d of %d", overrun, rec.Status.Attempts, rec.Status.MaxAttempts)
			x.setDead(t, s)
		}
		x.recordEvent(t, rec, jobpb.Event_TIMED_OUT, to, rec.Status.Attempts, "")
	})
}

// setDead makes a job of the topic dead, behind those that died before it.
func (x *tx) setDead(t *topic, s *record.Status) {
	s.SetDead(t.Rank, x.clock())
	t.Rank++
	t.Died++
}
