package history

import (
	"math"
	"slices"
)

// checkLeases is the first half of I4: reservations of one job do not overlap.
func (s *jobHistory) checkLeases() {
	for i := 1; i < len(s.deliveries); i++ {
		a, b := s.deliveries[i-1], s.deliveries[i]
		if a.Seq != b.Seq {
			continue
		}
		if a.Generation == b.Generation {
			s.report.Violate("I4", s.id, "reservation %d of seq %d was handed out twice", a.Generation, a.Seq)
			continue
		}
		if over := s.leaseOver(a); b.Complete < over-s.slack() {
			s.report.Violate("I4", s.id, "reservation %d was handed out %v before reservation %d was over", b.Generation, micros(over-b.Complete), a.Generation)
		}
	}
}

// leaseOver is the earliest instant at which reservation d may have ended: a call
// that may have ended it, or its deadline, later touches included.
func (s *jobHistory) leaseOver(d *Op) int64 {
	deadline, ended := d.ReservedUntil, int64(math.MaxInt64)
	for _, f := range s.fenced {
		if f.Seq != d.Seq || f.Generation != d.Generation || !f.maybe() {
			continue
		}
		if f.Kind != Touch {
			ended = min(ended, f.Invoke)
		} else if f.Outcome == OK {
			deadline = max(deadline, f.ReservedUntil, f.Invoke+f.TTR.Microseconds())
		}
	}
	for _, x := range s.deletes {
		if x.maybe() {
			ended = min(ended, x.Invoke)
		}
	}
	return min(deadline, ended)
}

// checkStaleTokens is the second half of I4: a token is invalid once its job was
// handed out again, or once it was used to end the reservation.
func (s *jobHistory) checkStaleTokens() {
	for _, f := range s.fenced {
		if f.Outcome != OK {
			continue
		}
		if s.tokens && f.Generation == 0 {
			s.report.Violate("token", s.id, "%s without a token was accepted; topic %s requires one", f.Kind, s.topic())
			continue
		}
		for _, d := range s.deliveries {
			if d.Seq == f.Seq && d.Generation > f.Generation && d.Complete < f.Invoke {
				s.report.Violate("I4", s.id, "%s with the stale token of reservation %d was accepted after reservation %d was handed out", f.Kind, f.Generation, d.Generation)
				break
			}
		}
		spent := slices.ContainsFunc(s.fenced, func(e *Op) bool {
			return e.Outcome == OK && e.Kind != Touch && e.Seq == f.Seq && e.Generation == f.Generation && e.Complete < f.Invoke
		})
		if spent {
			s.report.Violate("I4", s.id, "%s was accepted with the token of reservation %d, which an earlier call had ended", f.Kind, f.Generation)
		}
	}
}

// checkAttempts is I7: the count that comes with each delivery stays within the
// limit and grows, so deliveries are bounded by it. Only a kick sets it back.
func (s *jobHistory) checkAttempts() {
	limit := s.highestLimit()
	for i, d := range s.deliveries {
		if limit > 0 && d.Attempts > limit {
			s.report.Violate("I7", s.id, "attempt %d of at most %d was delivered", d.Attempts, limit)
		}
		if d.Lease != 0 {
			continue // beanstalkd's protocol does not have it
		}
		if d.Attempts < 1 {
			s.report.Violate("I7", s.id, "delivered with attempt %d", d.Attempts)
		}
		if i == 0 {
			continue
		}
		before := s.deliveries[i-1]
		follows := before.Lease == 0 && before.Seq == d.Seq && before.Generation < d.Generation
		if follows && d.Attempts <= before.Attempts && !s.kickedBetween(before, d) {
			s.report.Violate("I7", s.id, "attempts went from %d to %d without a kick", before.Attempts, d.Attempts)
		}
	}
}

// checkImported: the first reservation of an imported job has its due time, and is the attempt after those
// that it had. Its attempts count from there.
func (s *jobHistory) checkImported() {
	if len(s.adds) == 0 || !s.adds[0].Imported || len(s.jobKicks) > 0 {
		return
	}
	a := s.adds[0] // a repeated import is the same
	for _, d := range s.deliveries {
		if d.Generation == 1 && (d.Attempts != a.Attempts+1 || d.Due != a.Due) {
			s.report.Violate("import", s.id, "delivered first as attempt %d, due at %d; it was imported with %d attempts, due at %d", d.Attempts, d.Due, a.Attempts, a.Due)
		}
	}
}

// highestLimit is the largest limit of attempts that the job may have had; 0 when
// it may have had none.
func (s *jobHistory) highestLimit() int {
	limit := 0
	for _, a := range s.adds {
		if limit = max(limit, a.MaxAttempts); a.MaxAttempts == 0 {
			return 0
		}
	}
	for _, u := range s.updates {
		limit = max(limit, u.MaxAttempts)
	}
	return limit
}

func (s *jobHistory) kickedBetween(a, b *Op) bool {
	return slices.ContainsFunc(s.kicks, func(k *Op) bool {
		return k.maybe() && k.Invoke <= b.Complete && (k.Outcome == Unknown || k.Complete >= a.Invoke)
	})
}
