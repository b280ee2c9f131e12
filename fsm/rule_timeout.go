package fsm

import (
	"fmt"

	"tarry/job"
	"tarry/job/jobpb"
)

// overrun is the reason of a job whose reservation expired.
const overrun = "time to run exceeded"

// timeOut ends a reservation that has expired.
func (x *tx) timeOut(t *topic, seq, entropy uint64) error {
	rec, err := x.jobIn(t, listReserved, seq, false)
	if err != nil {
		return err
	}
	t.timeouts++
	to, wait := listDead, int64(0)
	if !rec.exhausted() {
		if wait, err = x.backoff(t, rec, entropy, nil); err != nil { // it has waited for its time to run
			return err
		}
		to = listReady
		if wait > 0 {
			to = listDelayed
		}
	}
	x.timeouts = append(x.timeouts, job.Timeout{
		Seq: rec.seq, Generation: rec.status.generation, AtMS: rec.status.reservedUntilMS(), State: to.state(rec.status.phase),
	})
	return x.move(t, rec, listReserved, to, func(s *jobStatus) {
		s.timeouts++
		s.timedOut = true
		s.reason = overrun
		if to != listDead {
			s.setWaiting()
		}
		switch to {
		case listDelayed:
			s.dueMS, s.lastDelayMS = x.clock()+wait, wait
		case listDead:
			s.reason = fmt.Sprintf("%s on attempt %d of %d", overrun, rec.status.attempts, rec.status.maxAttempts)
			x.setDead(t, s)
		}
		x.recordEvent(t, rec, jobpb.Event_TIMED_OUT, to, rec.status.attempts, "")
	})
}

// exhausted reports whether the job has no attempt left.
func (rec *record) exhausted() bool {
	return rec.status.maxAttempts != 0 && rec.status.attempts >= rec.status.maxAttempts
}

// setDead makes a job of the topic dead, behind those that died before it.
func (x *tx) setDead(t *topic, s *jobStatus) {
	s.setDead(t.rank, x.clock())
	t.rank++
	t.died++
}
