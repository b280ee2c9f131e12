package fsm

import (
	"fmt"
	"math/bits"

	"tarry/fsm/internal/record"
	"tarry/job"
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

// releaseTopic releases the reserved jobs of a topic that a sweep selects, as their
// consumers could: an attempt is over, and after the last one a job is dead. No backoff
// delays them, because it is the consumer that failed.
func (x *tx) releaseTopic(op *jobpb.ReleaseTopic, r *jobpb.Result) error {
	if err := x.checkStart(op.Sweep); err != nil {
		return x.refuseInvalid(err, r)
	}
	t := x.m.topics[op.Topic]
	if t == nil {
		return nil
	}
	if t.settings.GetRequireToken() {
		return x.refuse(r, jobpb.Code_TOKEN_REQUIRED,
			"topic %.40q requires the token of each reservation, so its jobs are not released together", t.name)
	}
	release := &jobpb.Release{Reason: op.Reason}
	held := func(rec *record.Job) bool { return op.Consumer == "" || rec.Status.ReservedBy == op.Consumer }
	return x.sweep(t, record.ListReserved, op.Max, op.Sweep, r, held, func(rec *record.Job, _ int64, _ uint64) error {
		_, err := x.giveBack(t, rec, release)
		return err
	})
}

// bury makes a reserved job dead.
func (x *tx) bury(op *jobpb.Bury, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	err = x.move(t, rec, record.ListReserved, record.ListDead, func(s *record.Status) {
		s.SetPriority(op.SetPriority, op.Priority)
		s.SetReason(op.Reason)
		s.Buries++
		x.setDead(t, s)
		x.recordEvent(t, rec, jobpb.Event_BURIED, record.ListDead, s.Attempts, op.Reason)
	})
	r.State, r.Revision = jobpb.State_STATE_DEAD, rec.Status.Revision
	return err
}

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

// backoff returns how long a job waits after a failed attempt, in milliseconds. other is the
// backoff of a job that has none, in a topic that has none; nil: it does not wait. entropy is in
// the command, so all nodes compute the same jitter.
func (x *tx) backoff(t *topic, rec *record.Job, entropy uint64, other *jobpb.Backoff) (int64, error) {
	e, err := rec.Spec.DecodeOptions()
	if err != nil {
		return 0, err
	}
	b := e.GetBackoff()
	if b == nil {
		b = t.settings.GetBackoff()
	}
	if b == nil {
		b = other
	}
	if b == nil {
		return 0, nil
	}
	wait := backoffWait(b, rec.Status.Attempts)
	off := wait * int64(b.JitterPercent) / 100
	// 16 bits of randomness: a wait has 40 bits, so the product has 56.
	return wait - off*int64(mix(entropy^rec.Seq)>>48)>>16, nil
}

// backoffWait returns the wait after an attempt, without jitter. Attempts count from 1.
func backoffWait(b *jobpb.Backoff, attempt uint32) int64 {
	attempt = max(attempt, 1)
	if n := uint32(len(b.DelaysMs)); n > 0 {
		return b.DelaysMs[min(attempt, n)-1]
	}
	wait := b.BaseMs
	for range attempt - 1 {
		next := wait * int64(b.FactorPermille) / 1000
		if next >= b.MaxMs {
			return b.MaxMs
		}
		if next == wait {
			break // rounded down to no growth
		}
		wait = next
	}
	return wait
}

// mix spreads the bits of a number over all of it (the finalizer of SplitMix64,
// by Steele, Lea and Flood).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// waitUntil returns the list and the due instant of a job that waits until DueMS, or for
// DelayMS if DueMS is 0. The topic's spread is added if the job has to wait at all, or is
// of a scheduled run.
func (x *tx) waitUntil(t *topic, seq uint64, dueMS, delayMS, expiresMS int64) (record.List, int64) {
	now := x.clock()
	if dueMS == 0 {
		dueMS = x.after(delayMS)
	}
	if dueMS > now || x.planned {
		later := dueMS + spread(seq, t.settings.GetSpreadMs())
		if expiresMS == 0 || later < expiresMS { // the spread lets no job expire
			dueMS = later
		}
	}
	if dueMS <= now {
		return record.ListReady, now
	}
	return record.ListDelayed, dueMS
}

// spread returns an offset in [0, windowMS). The offsets of consecutive seqs fill the
// window evenly, however many they are, as the fractions of multiples of the golden ratio
// do.
func spread(seq uint64, windowMS int64) int64 {
	const golden = 0x9e3779b97f4a7c15 // its fraction, in 64 bits
	share, _ := bits.Mul64(seq*golden, uint64(windowMS))
	return int64(share)
}
