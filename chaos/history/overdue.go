package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// The rule "overdue" is the other half of I6: a job that is due, while a consumer waits on its
// topic, is handed out within a bound. Three things show that a job was held back:
//
//   - passed over: a call that began when the job was overdue brought others and had room for
//     it. What a reserve brings is from the log, so this holds during faults, too, unless the
//     cluster had just come back;
//   - turned away: such a call brought nothing at all. A node that is cut off may say that, so
//     this counts only some time after the last heal;
//   - kept waiting: a call waited for as long as the bound while the job was ready. This also
//     counts only some time after the last heal, and it counts when there was no answer.
//
// A consumer that is busy, or has no room, shows nothing: a queue with a backlog is not late.
//
// The bound is overdueBase and overdueWrites times the slowest write that was acknowledged
// shortly before or meanwhile. A due job takes two writes, one that makes it ready and one that
// hands it out, and the call's way to the leader and back takes no longer than a write. So the
// bound grows with the load of the machine, and a queue that is idle has seconds, as I6 says.

const (
	overdueBase   = 2 * time.Second
	overdueWrites = 4
	// loadSpan is how long before a call writes tell of the load.
	loadSpan = 10 * time.Second
	// settling is how long after the last heal consumers may wait on a node that is not back, or that has
	// not caught up.
	settling = 5 * time.Second
	// serving is the longest time without a write in which the cluster counts as serving.
	serving = time.Second
	// longestCall is longer than any client waits for a job.
	longestCall = 30 * time.Second
	// clockLag is how long the queue's clock may follow a wrong one after that was corrected:
	// the server's --max-clock-offset.
	clockLag = 5 * time.Second
)

// overdue looks for jobs that were held back.
type overdue struct {
	report *Report
	skews  []Skew
	quiet  []Window         // see settled
	writes []int64          // when writes were acknowledged, sorted
	slow   []int64          // by loadSpan since base: the slowest write
	base   int64            // of slow
	calls  map[string][]*Op // of consumers with room, by topic and when they began
	lost   map[string][]*Op // reserves whose outcome is unknown, by topic and when they began
}

func checkOverdue(ops []Op, jobs []*jobHistory, o Options, r *Report) {
	x := &overdue{report: r, skews: o.Skews, quiet: o.settled(), calls: map[string][]*Op{}, lost: map[string][]*Op{}}
	for i := range ops {
		x.take(&ops[i])
	}
	if len(x.writes) == 0 {
		return
	}
	slices.Sort(x.writes)
	for _, calls := range []map[string][]*Op{x.calls, x.lost} {
		for _, list := range calls {
			slices.SortFunc(list, func(a, b *Op) int { return cmp.Compare(a.Invoke, b.Invoke) })
		}
	}
	for _, s := range jobs {
		x.job(s)
	}
}

// settled returns the times without a fault, sorted, with the time to settle taken off.
func (o Options) settled() (windows []Window) {
	for _, w := range o.Quiet {
		if w.To == 0 {
			w.To = math.MaxInt64
		}
		if w.From += settling.Microseconds(); w.From < w.To {
			windows = append(windows, w)
		}
	}
	return windows
}

func (x *overdue) take(op *Op) {
	switch unknown := op.Kind == Deliver && op.ID == "" && op.Outcome == Unknown; {
	case op.Kind == Reserve, unknown:
		for _, topic := range strings.Fields(op.Topics) {
			x.calls[topic] = append(x.calls[topic], op)
			if unknown {
				x.lost[topic] = append(x.lost[topic], op)
			}
		}
	case op.writes() && op.Kind != Deliver:
		if x.base == 0 {
			x.base = op.Invoke
		}
		x.writes = append(x.writes, op.Complete)
		for at := x.span(op.Invoke); at <= x.span(op.Complete); at++ {
			for at >= len(x.slow) {
				x.slow = append(x.slow, 0)
			}
			x.slow[at] = max(x.slow[at], op.Complete-op.Invoke)
		}
	}
}

func (x *overdue) span(at int64) int {
	return max(0, int((at-x.base)/loadSpan.Microseconds()))
}

// bound is what the load between two instants allows, in microseconds.
func (x *overdue) bound(from, to int64) int64 {
	var slowest int64
	for at := max(0, x.span(from)-1); at <= x.span(to) && at < len(x.slow); at++ {
		slowest = max(slowest, x.slow[at])
	}
	return overdueBase.Microseconds() + overdueWrites*slowest
}

// served reports whether writes were acknowledged throughout.
func (x *overdue) served(from, to int64) bool {
	return worstGap(x.writes, Window{from, to}) <= serving
}

// calm is the part of a time that is in one that is quiet.
func (x *overdue) calm(w Window) Window {
	i, _ := slices.BinarySearchFunc(x.quiet, w.To, func(q Window, to int64) int { return cmp.Compare(q.From, to) })
	if i == 0 {
		return Window{w.To, w.To}
	}
	return Window{max(w.From, x.quiet[i-1].From), min(w.To, x.quiet[i-1].To)}
}

// skewed reports whether a clock was wrong on purpose, or the queue's clock may have followed one.
func (x *overdue) skewed(w Window) bool {
	return slices.ContainsFunc(x.skews, func(k Skew) bool {
		return k.From <= w.To && w.From <= k.To+clockLag.Microseconds()
	})
}

// job judges each time in which a job was certainly ready.
func (x *overdue) job(s *jobHistory) {
	calls := x.calls[s.topic()]
	if len(calls) == 0 || s.limited || len(s.moves)+len(s.sweeps)+len(s.movers) > 0 {
		return
	}
	for i, d := range s.deliveries {
		from, ok := x.readyFrom(s, i)
		ready := Window{from, s.reservedFrom(d)}
		if !ok || ready.To <= ready.From || x.skewed(ready) {
			continue
		}
		first, _ := slices.BinarySearchFunc(calls, ready.From-longestCall.Microseconds(), func(c *Op, at int64) int { return cmp.Compare(c.Invoke, at) })
		for _, c := range calls[first:] {
			if c.Invoke >= ready.To {
				break
			}
			if late, how := x.heldBack(ready, c); late > 0 {
				x.report.Violate("overdue", s.id, "reservation %d of seq %d was ready for %v and not handed out: client %d was %s at %d by %s", d.Generation, d.Seq, micros(ready.To-ready.From), c.Client, how, c.Complete, c.Node)
				break
			}
		}
	}
}

// heldBack reports for how long a job that was ready was withheld from a call, when that is
// longer than the bound.
func (x *overdue) heldBack(ready Window, c *Op) (late int64, how string) {
	bound := x.bound(min(ready.From, c.Invoke), min(ready.To, c.Complete))
	waited := x.calm(Window{max(ready.From, c.Invoke), min(ready.To, c.Complete)})
	late = waited.To - waited.From
	x.report.WorstWait = max(x.report.WorstWait, micros(late))
	if late > bound {
		return late, "kept waiting"
	}
	late = c.Invoke - ready.From
	since := Window{c.Invoke - bound, c.Complete}
	if c.Kind != Reserve || late < bound || c.Complete > ready.To || !x.served(since.From, since.To) {
		return 0, ""
	}
	if c.Brought > 0 {
		return late, "passed over"
	}
	if x.calm(since) == since {
		return late, "turned away"
	}
	return 0, ""
}

// readyFrom is the instant from which the job of a delivery was certainly ready; false: that is
// not known. By its generation no other reservation came between.
func (x *overdue) readyFrom(s *jobHistory, i int) (int64, bool) {
	d := s.deliveries[i]
	if i > 0 && s.deliveries[i-1].Seq == d.Seq {
		return s.readyAgain(s.deliveries[i-1], d)
	}
	from := int64(math.MaxInt64)
	for _, a := range s.adds {
		if a.Outcome == OK && a.Seq == d.Seq {
			from = min(from, a.Complete+a.Delay.Microseconds())
		}
	}
	if from == math.MaxInt64 || d.Generation != 1 {
		return 0, false
	}
	if d.Lease != 0 && slices.ContainsFunc(x.lost[s.topic()], func(c *Op) bool { return c.Invoke < d.Complete && c.Complete > s.adds[0].Invoke }) {
		return 0, false // beanstalkd's protocol does not tell generations
	}
	return from + s.slack(), true
}

// readyAgain is readyFrom after another reservation, of p.
func (s *jobHistory) readyAgain(p, d *Op) (int64, bool) {
	follows := d.Generation == p.Generation+1 && p.Lease == 0 && d.Lease == 0
	if !follows || s.highestLimit() > 0 || s.waits != [3]int64{} {
		return 0, false
	}
	from := p.ReservedUntil
	for _, f := range s.fenced {
		if f.Seq != p.Seq || f.Generation != p.Generation || !f.maybe() {
			continue
		}
		switch {
		case f.Kind == Finish:
		case f.Kind == Touch && f.Outcome == OK:
			from = max(from, f.ReservedUntil)
		case f.Kind == Release && f.Outcome == OK:
			wait := f.Delay
			if wait == 0 {
				wait = longestWait(p.Attempts)
			}
			from = max(from, f.Complete+wait.Microseconds())
		default:
			return 0, false
		}
	}
	return from + s.slack(), true
}

// longestWait is the wait after a release without a delay, if nobody has a backoff: a second, twice as
// long each time, up to an hour, less up to a fifth.
func longestWait(attempt int) time.Duration {
	return min(time.Second<<min(max(attempt-1, 0), 12), time.Hour)
}

// reservedFrom is the earliest instant at which a delivery's reservation may have begun.
func (s *jobHistory) reservedFrom(d *Op) int64 {
	ttr := cmp.Or(d.TTR, s.longestTTR()).Microseconds()
	if d.Lease != 0 || d.ReservedUntil == 0 {
		return d.Invoke
	}
	return max(d.Invoke, d.ReservedUntil-ttr-s.slack())
}
