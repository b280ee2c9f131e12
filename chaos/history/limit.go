package history

import (
	"cmp"
	"maps"
	"slices"
)

// lease is a time in which a job was certainly reserved.
type lease struct {
	from, to int64
	op       *Op
}

// checkStreams: the jobs of a stream that are certainly unfinished when one
// arrives are no more than its credit.
func checkStreams(jobs []*jobHistory, r *Report) {
	streams := map[uint64][]lease{}
	for _, s := range jobs {
		for _, d := range s.deliveries {
			if d.Stream != 0 {
				streams[d.Stream] = append(streams[d.Stream], lease{d.Complete, s.leaseOver(d) - s.slack(), d})
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(streams)) {
		credit := streams[number][0].op.Credit
		if last, held := mostHeld(streams[number]); held > credit {
			r.Violate("credit", last.op.ID, "it came over a stream of %s as the %dth unfinished job; the credit was %d", last.op.Node, held, credit)
		}
	}
}

// checkLimits holds topics to their limits, which were set before their first job.
func checkLimits(ops []Op, jobs []*jobHistory, r *Report) {
	limits := limitsOf(ops)
	for _, topic := range slices.Sorted(maps.Keys(limits)) {
		limits[topic].check(topic, jobs, r)
	}
}

// limitsOf are the limits of topics that have any.
func limitsOf(ops []Op) map[string]*Limits {
	topics := map[string]*Limits{}
	for i := range ops {
		if op := &ops[i]; op.Kind == Limit && op.Outcome == OK {
			topics[op.Topic] = op.Limits
		}
	}
	return topics
}

func (l *Limits) check(topic string, jobs []*jobHistory, r *Report) {
	var pending, reserved []lease
	var instants []int64
	for _, s := range jobs {
		if s.topic() != topic {
			continue
		}
		for _, a := range s.adds {
			if a.Outcome == OK && a.Result == created {
				pending = append(pending, lease{a.Complete, s.delayedUntil(a) - s.slack(), a})
			}
		}
		for _, d := range s.deliveries {
			reserved = append(reserved, lease{d.Complete, s.leaseOver(d) - s.slack(), d})
			instants = append(instants, d.ReservedUntil-s.longestTTR().Microseconds())
		}
	}
	// The last of jobs that wait at one instant was added when all the others did.
	if last, n := mostHeld(pending); l.Pending > 0 && n > l.Pending {
		r.Violate("limit", last.op.ID, "topic %s had %d delayed jobs when it was added; the limit is %d", topic, n, l.Pending)
	}
	if last, n := mostHeld(reserved); l.Reserved > 0 && n > l.Reserved {
		r.Violate("limit", last.op.ID, "topic %s had %d reserved jobs when it was delivered; the limit is %d", topic, n, l.Reserved)
	}
	if l.Rate > 0 {
		l.checkRate(topic, instants, r)
	}
}

// delayedUntil is the earliest instant at which the job of an add may have ceased
// to be delayed.
func (s *jobHistory) delayedUntil(a *Op) int64 {
	until := a.Invoke + a.Delay.Microseconds()
	for _, ops := range [][]*Op{s.deletes, s.kicks} {
		for _, op := range ops {
			if op.maybe() && (op.Outcome == Unknown || op.Complete >= a.Invoke) {
				until = min(until, op.Invoke)
			}
		}
	}
	if at, ok := s.purgedFrom(); ok {
		until = min(until, at)
	}
	return until
}

// checkRate takes a token for each reservation, at its instant by the cluster's
// clock.
func (l *Limits) checkRate(topic string, instants []int64, r *Report) {
	slices.Sort(instants)
	const rounding = 0.01 // of a token: instants are whole milliseconds
	tokens := float64(l.Burst)
	for i, at := range instants {
		if i > 0 {
			tokens = min(float64(l.Burst), tokens+l.Rate*micros(at-instants[i-1]).Seconds())
		}
		if tokens--; tokens < -rounding-l.Rate/1000 {
			r.Violate("limit", "", "topic %s handed out more than %d jobs and %v a second until %d", topic, l.Burst, l.Rate, at)
			return
		}
	}
}

// checkPauses: a paused topic hands nothing out.
func checkPauses(ops []Op, jobs []*jobHistory, r *Report) {
	turns := map[string][]*Op{} // pauses and resumes by topic
	for i := range ops {
		if op := &ops[i]; (op.Kind == Pause || op.Kind == Resume) && op.maybe() {
			turns[op.Topic] = append(turns[op.Topic], op)
		}
	}
	for _, s := range jobs {
		for _, p := range turns[s.topic()] {
			if p.Kind != Pause || p.Outcome != OK {
				continue
			}
			until := pausedUntil(p, turns[s.topic()]) - s.slack()
			for _, d := range s.deliveries {
				if d.Complete < until && s.reservedAfter(d, p.Complete) {
					r.Violate("pause", s.id, "delivered while topic %s was paused, %v before the end", s.topic(), micros(until-d.Complete))
				}
			}
		}
	}
}

// pausedUntil is the earliest instant at which a pause may have ended.
func pausedUntil(p *Op, turns []*Op) int64 {
	until := p.Invoke + p.Delay.Microseconds()
	for _, q := range turns {
		if q != p && (q.Outcome == Unknown || q.Complete >= p.Invoke) {
			until = min(until, q.Invoke)
		}
	}
	return until
}

// mostHeld is the largest number of leases that lasted at one instant, and the
// lease that made it so many.
func mostHeld(leases []lease) (last lease, held int) {
	leases = slices.DeleteFunc(leases, func(l lease) bool { return l.to < l.from })
	slices.SortFunc(leases, func(a, b lease) int { return cmp.Compare(a.from, b.from) })
	ends := make([]int64, len(leases))
	for i, l := range leases {
		ends[i] = l.to
	}
	slices.Sort(ends)
	over := 0
	for i, l := range leases {
		for over < len(ends) && ends[over] < l.from {
			over++
		}
		if n := i + 1 - over; n > held {
			last, held = l, n
		}
	}
	return last, held
}
