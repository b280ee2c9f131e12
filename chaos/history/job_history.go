package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// jobHistory is everything that clients did to one id.
type jobHistory struct {
	id         string
	adds       []*Op
	deliveries []*Op // sorted by seq, then generation
	finishes   []*Op
	deletes    []*Op
	fenced     []*Op // every call that carried a token, finishes included
	jobKicks   []*Op // of this job
	gets       []*Op
	updates    []*Op
	moves      []*Op
	sweeps     []*Op // of topics that the job may have been in
	movers     []*Op // updates and adds that may give a job that is there another due instant
	kicks      []*Op // of the job's topic, and of this job

	limited  bool // its topic has limits, so it may wait beyond its due instant
	retained bool // its topic retains jobs that have ended
	pushed   bool // its topic has a target
	// Of its topic: late finishes are refused, and steps without a token are.
	refusesLate, tokens bool
	// Of its topic, in microseconds, 0 for none; drops: those that expire go away.
	expire, spread int64
	drops          bool

	options Options
	bound   int64    // see slack
	skew    int64    // see lasted
	waits   [3]int64 // see backoff
	report  *Report
}

func (s *jobHistory) take(op *Op) {
	if op.moves() {
		s.movers = append(s.movers, op)
	}
	switch op.Kind {
	case Move:
		s.moves = append(s.moves, op)
	case Update:
		s.updates = append(s.updates, op)
	case Add:
		s.adds = append(s.adds, op)
	case Deliver:
		s.deliveries = append(s.deliveries, op)
	case Delete:
		s.deletes = append(s.deletes, op)
	case Finish:
		s.finishes = append(s.finishes, op)
		s.fenced = append(s.fenced, op)
	case Release, Touch, Bury:
		s.fenced = append(s.fenced, op)
	case Kick:
		s.jobKicks = append(s.jobKicks, op)
	case Get:
		s.gets = append(s.gets, op)
	}
}

func (s *jobHistory) topic() string {
	if len(s.adds) > 0 {
		return s.adds[0].Topic
	}
	return ""
}

// slack is how far clocks may have been apart for this job, in microseconds.
func (s *jobHistory) slack() int64 { return s.bound }

// lasted reports whether what a client has asked for, until an instant, lasted until then. Both are
// by the recorder's steady clock, so only a clock that a fault has set is an excuse: no delay is
// shorter than asked for, not by a microsecond.
func (s *jobHistory) lasted(until, ended int64) bool { return ended >= until-s.skew }

func (s *jobHistory) findBound() {
	by := time.Duration(0)
	for _, k := range s.options.Skews {
		if k.By > by && s.calledIn(k.Window) {
			by = k.By
		}
	}
	s.bound, s.skew = (s.options.ClockBound + by).Microseconds(), by.Microseconds()
}

// calledIn reports whether a call that sets an instant was under way in a window.
func (s *jobHistory) calledIn(w Window) bool {
	for _, ops := range [][]*Op{s.adds, s.updates, s.deliveries, s.fenced} {
		for _, op := range ops {
			if op.Invoke <= w.To && (op.Complete >= w.From || op.Outcome == Unknown) {
				return true
			}
		}
	}
	return false
}

func (s *jobHistory) check() {
	s.kicks = append(slices.DeleteFunc(slices.Clone(s.kicks), func(k *Op) bool { return !s.matches(k) }), s.jobKicks...)
	s.number()
	s.findWaits()
	s.takePosts()
	s.findBound()
	slices.SortFunc(s.deliveries, func(a, b *Op) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Generation, b.Generation))
	})
	s.count()
	s.checkLost()
	s.checkPhantom()
	s.checkEarly()
	s.checkExpiry()
	s.checkSpread()
	s.checkPostponed()
	s.checkBackoff()
	s.checkLeases()
	s.checkStaleTokens()
	s.checkLate()
	s.checkGone()
	s.checkReplaced()
	s.checkAttempts()
	s.checkImported()
	s.checkDuplicates()
	s.checkRevisions()
	s.checkPushed()
}

// number gives reservations over beanstalkd their generation. All that a topic's
// beanstalkd clients made come before those of the drain, which knows its own, so
// the first is 1. Lease ties the calls of a holder to them.
func (s *jobHistory) number() {
	var leased []*Op
	for _, d := range s.deliveries {
		if d.Lease != 0 {
			leased = append(leased, d)
		}
	}
	if len(leased) == 0 {
		return
	}
	slices.SortFunc(leased, func(a, b *Op) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Complete, b.Complete)) })
	s.putLateFirst(leased)
	generation := map[uint64]uint64{}
	for i, d := range leased {
		d.Generation = 1
		if i > 0 && leased[i-1].Seq == d.Seq {
			d.Generation = leased[i-1].Generation + 1
		}
		generation[d.Lease] = d.Generation
	}
	for _, f := range s.fenced {
		if f.Lease != 0 {
			f.Generation = generation[f.Lease]
		}
	}
}

// count adds the job to the figures of a queue as a whole.
func (s *jobHistory) count() {
	delivered := len(s.deliveries) > 0
	switch {
	case slices.ContainsFunc(s.adds, func(a *Op) bool { return a.Outcome == OK }):
		s.report.Jobs++
	case delivered:
		s.report.Recovered++
	}
	again := false
	for i, d := range s.deliveries {
		if i > 0 && s.deliveries[i-1].Seq == d.Seq {
			s.report.Redeliveries++
			again = true
		}
	}
	if again {
		s.report.Duplicated++
	}
}

// endOf is the earliest instant at which a life of the job may have ended for
// good, by a finish of seq, a delete, an add that replaced it or its expiry;
// MaxInt64 when nothing may have ended it.
func (s *jobHistory) endOf(seq uint64) int64 {
	end := int64(math.MaxInt64)
	for _, f := range s.finishes {
		if f.Seq == seq && f.maybe() {
			end = min(end, f.Invoke)
		}
	}
	for _, d := range s.deletes {
		if d.maybe() {
			end = min(end, d.Invoke)
		}
	}
	for _, by := range []func() (int64, bool){s.purgedFrom, s.droppedFrom} {
		if at, ok := by(); ok {
			end = min(end, at)
		}
	}
	for _, a := range s.adds {
		if a.mayReplace() && (a.Outcome == Unknown || (a.Result == replaced && a.Seq > seq)) {
			end = min(end, a.Invoke)
		}
	}
	return end
}

// checkLost is I1. The drain has finished all jobs that were left, so an acknowledged
// job that no client finished or deleted was lost.
func (s *jobHistory) checkLost() {
	for _, a := range s.adds {
		if a.Outcome == OK && s.endOf(a.Seq) == math.MaxInt64 {
			s.report.Lost++
			s.report.Violate("I1", s.id, "add acknowledged by %s with seq %d, never finished or deleted, and not there after the drain", a.Node, a.Seq)
			return
		}
	}
}

// checkPhantom is I2: every delivered job was added before, with the same content.
func (s *jobHistory) checkPhantom() {
	for _, d := range s.deliveries {
		origin := slices.IndexFunc(s.adds, func(a *Op) bool { return a.maybe() && a.Invoke <= d.Complete })
		if origin < 0 {
			s.report.Unexpected++
			s.report.Violate("I2", s.id, "%s delivered it, but no add that may have succeeded came before", d.Node)
			continue
		}
		if a := s.adds[origin]; !s.asked(d) {
			s.report.Violate("I2", s.id, "delivered with topic %q and body %.40q, added with topic %q and body %.40q", d.Topic, d.Body, a.Topic, a.Body)
		}
	}
}

// asked reports whether a client asked for a job as delivery d brings it.
func (s *jobHistory) asked(d *Op) bool {
	before := func(o *Op) bool { return o.maybe() && o.Invoke <= d.Complete }
	return slices.ContainsFunc(s.adds, func(a *Op) bool {
		topic := d.Topic == "" || a.Topic == d.Topic || s.mayBeIn(d.Topic, d.Complete)
		return before(a) && topic && a.Header == d.Header && (a.Body == d.Body || slices.ContainsFunc(s.updates, func(u *Op) bool { return before(u) && u.Body == d.Body }))
	})
}

// checkEarly is I3, judged by the client's clock (asked at + delay) as well as by
// the due instant that the server shows.
func (s *jobHistory) checkEarly() {
	earliest := int64(math.MaxInt64)
	for _, a := range s.adds {
		if a.maybe() {
			earliest = min(earliest, a.Invoke+a.Delay.Microseconds())
		}
	}
	for _, m := range s.movers {
		if m.maybe() {
			earliest = min(earliest, m.Invoke+m.Delay.Microseconds())
		}
	}
	for i, d := range s.deliveries {
		first := i == 0 || s.deliveries[i-1].Seq != d.Seq
		if first && d.Outcome == OK && d.Due > 0 && !s.limited {
			s.report.WorstLateness = max(s.report.WorstLateness, micros(d.Complete-d.Due))
		}
		asked := s.releasedUntil(d)
		if earliest != math.MaxInt64 && !s.hastened(d) {
			asked = max(asked, earliest)
		}
		switch {
		case !s.lasted(asked, d.Complete):
			s.report.Violate("I3", s.id, "delivered %v before the delay that was asked for was over", micros(asked-d.Complete))
		case d.Complete < d.Due-s.slack():
			s.report.Violate("I3", s.id, "delivered %v before it was due", micros(d.Due-d.Complete))
		}
	}
}

// hastened reports whether a kick may have made the job ready before delivery d.
func (s *jobHistory) hastened(d *Op) bool {
	return slices.ContainsFunc(s.jobKicks, func(k *Op) bool { return k.maybe() && k.Invoke <= d.Complete })
}

// releasedUntil is the earliest due instant that acknowledged releases of earlier
// reservations leave to delivery d; 0 when there is none.
func (s *jobHistory) releasedUntil(d *Op) int64 {
	var until int64
	for _, f := range s.fenced {
		before := f.Kind == Release && f.Outcome == OK && f.Seq == d.Seq && f.Generation < d.Generation
		// A release at the limit of attempts leaves a dead job, which a kick
		// makes ready at once.
		if before && f.Delay > 0 && !s.kickedBetween(f, d) && !s.hastenedBetween(f, d) {
			until = max(until, f.Invoke+f.Delay.Microseconds())
		}
	}
	return until
}

// checkGone is I5. A finish fences by generation, so no clock is needed; a delete
// names the id, which an add may have taken again since.
func (s *jobHistory) checkGone() {
	for _, d := range s.deliveries {
		for _, f := range s.finishes {
			if f.Outcome == OK && f.Seq == d.Seq && f.Generation < d.Generation {
				s.report.Violate("I5", s.id, "delivered again (generation %d) after the finish of generation %d was acknowledged", d.Generation, f.Generation)
			}
		}
		for _, x := range s.deletes {
			if x.Outcome == OK && s.reservedAfter(d, x.Complete) && !s.mayBeNewLife(d, x) {
				s.report.Violate("I5", s.id, "delivered %v after its delete was acknowledged", micros(d.Complete-x.Complete))
			}
		}
	}
}

// checkReplaced is I5 for jobs that another job with their id replaced.
func (s *jobHistory) checkReplaced() {
	for _, a := range s.adds {
		if a.Outcome != OK || a.Result != replaced {
			continue
		}
		for _, d := range s.deliveries {
			if d.Seq < a.Seq && s.reservedAfter(d, a.Complete) {
				s.report.Violate("I5", s.id, "seq %d was delivered %v after seq %d had replaced it", d.Seq, micros(d.Complete-a.Complete), a.Seq)
			}
		}
	}
}

// reservedAfter reports whether delivery d was certainly reserved after an
// instant: its call began later, or its reservation did. The second also judges
// long polls, which begin early.
func (s *jobHistory) reservedAfter(d *Op, instant int64) bool {
	if d.Invoke > instant {
		return true
	}
	ttr := d.TTR
	if ttr == 0 {
		ttr = s.longestTTR()
	}
	return d.ReservedUntil > 0 && d.ReservedUntil-ttr.Microseconds()-s.slack() > instant
}

// mayBeNewLife reports whether delivery d can stem from an add that took the id
// again after delete x.
func (s *jobHistory) mayBeNewLife(d, x *Op) bool {
	for _, a := range s.adds {
		sameLife := a.Outcome == OK && a.Seq == d.Seq && a.Complete < x.Invoke
		if sameLife {
			return false
		}
	}
	return slices.ContainsFunc(s.adds, func(a *Op) bool {
		return a.Outcome == Unknown || (a.Outcome == OK && a.Complete > x.Invoke)
	})
}

// checkDuplicates is I8: one id has one life at a time. A second seq is right
// only when the first life may have ended before the second was seen.
func (s *jobHistory) checkDuplicates() {
	seen := map[uint64]int64{} // seq -> first instant at which a client knew of it
	note := func(op *Op) {
		if op.Outcome != OK || op.Seq == 0 {
			return
		}
		if at, ok := seen[op.Seq]; !ok || op.Complete < at {
			seen[op.Seq] = op.Complete
		}
	}
	for _, a := range s.adds {
		note(a)
	}
	for _, d := range s.deliveries {
		note(d)
	}
	if len(seen) < 2 {
		return
	}
	var seqs []uint64
	for seq := range seen {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for i := 1; i < len(seqs); i++ {
		if s.retained {
			s.report.Violate("retain", s.id, "became two jobs, seq %d and seq %d, though its topic retains the first", seqs[i-1], seqs[i])
		}
		if s.endOf(seqs[i-1]) > seen[seqs[i]] {
			s.report.Violate("I8", s.id, "became two jobs, seq %d and seq %d, while the first was alive", seqs[i-1], seqs[i])
		}
	}
}
