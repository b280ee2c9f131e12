package history

import "slices"

// Finishes that come after their reservation expired: the limit RefuseLate of a
// topic. Elsewhere they count, as long as nobody else had to do with the job.

// staleToken refuses a call whose reservation is over.
const staleToken = "stale_token"

// checkLate: a late finish counts where the topic accepts it, and only there.
func (s *jobHistory) checkLate() {
	for _, f := range s.finishes {
		at := slices.IndexFunc(s.deliveries, func(d *Op) bool { return d.Seq == f.Seq && d.Generation == f.Generation })
		if at < 0 {
			continue
		}
		d := s.deliveries[at]
		switch {
		case s.refusesLate && f.Outcome == OK && s.seenOver(d, f):
			s.report.Violate("late", s.id, "finish of reservation %d was accepted after a read had shown that it was over; topic %s refuses that", f.Generation, s.topic())
		case !s.refusesLate && f.Code == staleToken && at+1 < len(s.deliveries) && s.alone(d, f, s.deliveries[at+1]):
			s.report.Violate("late", s.id, "finish of reservation %d was refused, though nobody else had to do with the job until reservation %d", f.Generation, f.Generation+1)
		}
	}
}

// seenOver reports whether a read between delivery d and finish f found the job
// in no reservation.
func (s *jobHistory) seenOver(d, f *Op) bool {
	return slices.ContainsFunc(s.gets, func(g *Op) bool {
		waits := g.State == "ready" || g.State == "delayed" || g.State == "dead"
		return g.Outcome == OK && g.Seq == d.Seq && waits && g.Invoke > d.Complete && g.Complete < f.Invoke
	})
}

// alone reports whether finish f of delivery d was certainly the only one to do
// something with the job before the next delivery. An attempt that was taken back,
// because the server believed that its answer was lost, does not count in the next.
func (s *jobHistory) alone(d, f, next *Op) bool {
	follows := next.Seq == d.Seq && next.Generation == d.Generation+1 && next.Invoke > f.Complete && next.Attempts > d.Attempts
	if !follows || d.Post != nil || d.Lease != 0 {
		return false
	}
	others := slices.ContainsFunc(s.fenced, func(o *Op) bool {
		return o != f && o.Kind != Touch && o.Generation == f.Generation && o.maybe()
	})
	maybe := func(o *Op) bool { return o.maybe() }
	return !others && !slices.ContainsFunc(s.updates, maybe) && !slices.ContainsFunc(s.movers, maybe) &&
		len(s.moves)+len(s.sweeps) == 0
}
