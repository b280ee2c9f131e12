package history

import (
	"math"
	"slices"
	"time"
)

// Rules of I3 for jobs that are made to wait again: by an update, by an add that
// postpones, or by their backoff.

// findWaits takes the shortest backoff that an add of the job asked for.
func (s *jobHistory) findWaits() {
	for i, a := range s.adds {
		for n, wait := range a.Backoff {
			if i == 0 || wait.Microseconds() < s.waits[n] {
				s.waits[n] = wait.Microseconds()
			}
		}
	}
}

// backoff is the shortest wait, in microseconds, after the attempt of that number
// failed; after any, when the number is 0.
func (s *jobHistory) backoff(attempt int) int64 {
	if attempt == 0 {
		return slices.Min(s.waits[:])
	}
	return s.waits[min(attempt, len(s.waits))-1]
}

// releaseWait is how long a release makes the job wait after an attempt.
func (s *jobHistory) releaseWait(release *Op, attempt int) int64 {
	if release.Delay > 0 {
		return release.Delay.Microseconds()
	}
	return s.backoff(attempt)
}

// checkPostponed: an acknowledged change of the due instant holds until the next.
func (s *jobHistory) checkPostponed() {
	for _, m := range s.movers {
		if m.Outcome != OK || (m.Kind == Add && m.Result != postponed) {
			continue
		}
		until := m.Invoke + m.Delay.Microseconds()
		for _, d := range s.deliveries {
			early := d.Seq == m.Seq && !s.lasted(until, d.Complete)
			if early && s.reservedAfter(d, m.Complete) && !s.hastenedBetween(m, d) && !s.kickedBetween(m, d) {
				s.report.Violate("I3", s.id, "delivered %v before the instant that an acknowledged %s gave it", micros(until-d.Complete), m.Kind)
			}
		}
	}
}

// checkBackoff: a failed attempt is followed by its wait.
func (s *jobHistory) checkBackoff() {
	if s.backoff(0) == 0 && !s.pushed {
		return
	}
	for i := 1; i < len(s.deliveries); i++ {
		a, b := s.deliveries[i-1], s.deliveries[i]
		if a.Seq != b.Seq || a.Generation == b.Generation || s.hastenedBetween(a, b) || s.kickedBetween(a, b) {
			continue
		}
		if back := s.backFrom(a); b.Complete < back-s.slack() {
			s.report.Violate("I3", s.id, "attempt %d was delivered %v before the wait after attempt %d was over", b.Attempts, micros(back-b.Complete), a.Attempts)
		}
	}
}

// backFrom is the earliest instant at which the job of reservation d can be ready
// again, unless something hastened it.
func (s *jobHistory) backFrom(d *Op) int64 {
	deadline, released := d.ReservedUntil, int64(math.MaxInt64)
	for _, f := range s.fenced {
		if f.Seq != d.Seq || f.Generation != d.Generation {
			continue
		}
		switch {
		case f.Kind == Release && f.maybe():
			released = min(released, f.Invoke+s.releaseWait(f, d.Attempts))
		case f.Kind == Touch && f.Outcome == OK:
			deadline = max(deadline, f.ReservedUntil)
		}
	}
	return min(deadline+s.backoff(d.Attempts), released)
}

// hastenedBetween reports whether the job may have got another due instant after
// call a and before delivery d.
func (s *jobHistory) hastenedBetween(a, d *Op) bool {
	between := func(m *Op) bool {
		return m != a && m.maybe() && m.Invoke <= d.Complete && (m.Outcome == Unknown || m.Complete >= a.Invoke)
	}
	return slices.ContainsFunc(s.movers, between) || slices.ContainsFunc(s.jobKicks, between)
}

// longestTTR is the longest that a reservation may be meant to last.
func (s *jobHistory) longestTTR() time.Duration {
	var ttr time.Duration
	for _, ops := range [][]*Op{s.adds, s.updates} {
		for _, op := range ops {
			ttr = max(ttr, op.TTR)
		}
	}
	return ttr
}
