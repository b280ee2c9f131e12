package history

import "math"

// Topics whose jobs expire: the limits Expire and Expiry.

// takeExpiry notes what the limits of the job's topic say of its expiry.
func (s *jobHistory) takeExpiry(l *Limits) {
	s.expire, s.drops = l.Expire.Microseconds(), l.Expiry == "drop"
}

// expiresFrom is the earliest instant at which the job may expire; MaxInt64 when
// it never does. A kick of a job that waits makes it due, which no other call on
// a job in such a topic does before its time. No client need have called for a job
// that expired while a clock was ahead, so all such times count.
func (s *jobHistory) expiresFrom() int64 {
	due := int64(math.MaxInt64)
	if s.expire == 0 {
		return due
	}
	for _, a := range s.adds {
		if a.maybe() {
			due = min(due, a.Invoke+a.Delay.Microseconds())
		}
	}
	for _, k := range s.jobKicks {
		if k.maybe() {
			due = min(due, k.Invoke)
		}
	}
	if due == math.MaxInt64 {
		return due
	}
	return due + s.expire - s.options.furthest()
}

// droppedFrom is when the job may first have been dropped.
func (s *jobHistory) droppedFrom() (at int64, ok bool) {
	at = s.expiresFrom()
	return at, s.drops && at != math.MaxInt64
}

// checkExpiry: a job is handed out before its expiry or not at all. Both instants
// are of the cluster's clock, so only their rounding matters.
func (s *jobHistory) checkExpiry() {
	if s.expire == 0 {
		return
	}
	for _, d := range s.deliveries {
		late := d.ReservedUntil - s.longestTTR().Microseconds() - d.Due - s.expire
		if d.Due > 0 && d.ReservedUntil > 0 && late > s.options.ClockBound.Microseconds() {
			s.report.Violate("expiry", s.id, "handed out %v after it had expired", micros(late))
		}
	}
}

// lapse is what expiry may have left of the job before the call was answered.
func (m jobModel) lapse(c call) []jobModel {
	s := c.job
	if s.expire == 0 || m.phase == absent || !m.ready(c) || !c.by(s.expiresFrom()) {
		return nil
	}
	if s.drops {
		return []jobModel{m.end(c, "deleted")}
	}
	m.late = m.late || m.phase == reserved
	m.phase, m.until, m.rev = dead, s.expiresFrom(), 0
	return []jobModel{m}
}
