package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options bound what Check accepts.
type Options struct {
	// ClockBound is how far the clocks of nodes and clients may be apart,
	// rounding to milliseconds included.
	ClockBound time.Duration
	// Skews are times in which a node's clock was further off, on purpose. The checks
	// allow for it in calls that were made in one.
	Skews []Skew
	// Stalls are times in which a node stood still, on purpose, so that replies came late.
	Stalls []Window
	// Quiet are the times without a fault, each from a heal on, and MaxQuietGap
	// the longest accepted stretch without a successful write in one.
	Quiet       []Window
	MaxQuietGap time.Duration
	// From and To bound the time under load, in the recorder's microseconds; 0
	// means the whole history.
	From, To int64
}

// Window is a time from an instant to another, in the recorder's microseconds; To
// 0 means the end of the load.
type Window struct{ From, To int64 }

// Skew is a Window in which clocks were apart by as much as By.
type Skew struct {
	Window
	By time.Duration
}

// Violation is one broken invariant.
type Violation struct {
	Invariant string `json:"invariant"`    // "I1" to "I11"
	ID        string `json:"id,omitempty"` // the job, when there is one
	Message   string `json:"message"`
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Invariant, v.ID, v.Message) }

// maxKept bounds the violations kept of one invariant; the rest are counted.
const maxKept = 10

// maxCalls bounds the calls on one job that a report shows.
const maxCalls = 60

// Report is the verdict on a history.
type Report struct {
	Ops           int                  `json:"operations"`
	ByKind        [kinds][outcomes]int `json:"-"`
	Jobs          int                  `json:"jobs"`               // ids of which at least one add was acknowledged
	Lost          int                  `json:"lost"`               // ids acknowledged and never seen again
	Unexpected    int                  `json:"unexpected"`         // deliveries of what nobody added
	Recovered     int                  `json:"recovered"`          // ids delivered though no add was acknowledged
	Duplicated    int                  `json:"duplicated"`         // ids delivered more than once, as after every time to run that passes
	Redeliveries  int                  `json:"redeliveries"`       // deliveries of a job after its first
	Posts         int                  `json:"posts"`              // to targets
	RefusedPosts  int                  `json:"refused_posts"`      // of them not answered with 2xx
	WorstWriteGap time.Duration        `json:"worst_write_gap_ns"` // longest stretch without a successful write
	WorstQuietGap time.Duration        `json:"worst_quiet_gap_ns"` // the same within Options.Quiet
	WorstLateness time.Duration        `json:"worst_lateness_ns"`  // longest time from due to delivery, first deliveries only
	WorstWait     time.Duration        `json:"worst_wait_ns"`      // longest time for which a job was ready while a consumer waited on its topic
	Lives         int                  `json:"lives"`              // ids whose calls were searched for an order that explains them
	OpenLives     int                  `json:"open_lives"`         // those for which the search took too long
	Violations    []Violation          `json:"violations,omitempty"`
	Calls         []Op                 `json:"calls,omitempty"` // on the first job without an order, by when they began; at most maxCalls
	Found         map[string]int       `json:"found,omitempty"` // violations by invariant, those not kept included
}

// OK reports whether no invariant was broken.
func (r *Report) OK() bool { return len(r.Found) == 0 }

// Unknowns counts the calls whose outcome is unknown.
func (r *Report) Unknowns() int {
	n := 0
	for k := range r.ByKind {
		n += r.ByKind[k][Unknown]
	}
	return n
}

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operations %d, jobs %d, unknown outcomes %d, recovered adds %d, redeliveries %d, worst write gap %v, worst lateness %v\n",
		r.Ops, r.Jobs, r.Unknowns(), r.Recovered, r.Redeliveries, r.WorstWriteGap.Round(time.Millisecond), r.WorstLateness.Round(time.Millisecond))
	fmt.Fprintf(&b, "  %s\n", r.Kinds())
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  VIOLATION %v\n", v)
	}
	return b.String()
}

// Kinds counts the calls of each kind, failed and unknown ones behind a plus.
func (r *Report) Kinds() string {
	var parts []string
	for k, n := range r.ByKind {
		if n == [outcomes]int{} {
			continue
		}
		part := fmt.Sprintf("%s %d", Kind(k), n[OK])
		if n[Fail]+n[Unknown] > 0 {
			part += fmt.Sprintf(" +%d failed +%d unknown", n[Fail], n[Unknown])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// Add takes over the findings of another report on the same history and, where
// this one has none, its figures.
func (r *Report) Add(other *Report) {
	violations, found := r.Violations, r.Found
	*r = *other
	r.Violations = append(violations, other.Violations...)
	r.Found = maps.Clone(other.Found)
	if r.Found == nil {
		r.Found = map[string]int{}
	}
	for invariant, n := range found {
		r.Found[invariant] += n
	}
}

// Check checks a history that ends with a full drain: every remaining job was
// delivered and finished. Its cost is linear in the history, except for sorting the
// few operations of each job and the instants of the writes.
func Check(ops []Op, o Options) *Report {
	r := &Report{Ops: len(ops), Found: map[string]int{}}
	jobs, byID, kicks := group(ops, r)
	takeRuns(ops, jobs, o)
	limits := limitsOf(ops)
	for _, s := range jobs {
		s.options, s.report, s.kicks = o, r, kicks[s.topic()]
		if l := limits[s.topic()]; l != nil {
			// Where jobs are retained none is replaced, so an id has one life.
			s.limited, s.retained, s.pushed, s.spread = true, l.Retain > 0, l.Push, l.Spread.Microseconds()
			s.refusesLate, s.tokens = l.RefuseLate, l.Tokens
			s.takeExpiry(l)
		}
	}
	takeSweeps(ops, jobs, kicks)
	checkBatches(ops, byID, r)
	checkPosts(ops, r)
	for _, s := range jobs {
		s.check()
	}
	checkSchedules(ops, jobs, o, r)
	checkStreams(jobs, r)
	checkLimits(ops, jobs, r)
	checkQuotas(ops, jobs, o, r)
	checkPauses(ops, jobs, r)
	checkWriteGap(ops, o, r)
	checkOverdue(ops, jobs, o, r)
	checkCounts(ops, r)
	checkCredentials(ops, r)
	checkLives(jobs, r)
	return r
}

// Violate adds a violation.
func (r *Report) Violate(invariant, id, format string, args ...any) {
	if r.Found == nil {
		r.Found = map[string]int{}
	}
	r.Found[invariant]++
	if r.Found[invariant] <= maxKept {
		r.Violations = append(r.Violations, Violation{invariant, id, fmt.Sprintf(format, args...)})
	}
}

// group sorts the operations by job, in the order of the first mention of each,
// and the kicks by topic.
func group(ops []Op, r *Report) (jobs []*jobHistory, byID map[string]*jobHistory, kicks map[string][]*Op) {
	byID = map[string]*jobHistory{}
	kicks = map[string][]*Op{}
	for i := range ops {
		op := &ops[i]
		r.ByKind[op.Kind][op.Outcome]++
		if op.Kind == KickTopic {
			kicks[op.Topic] = append(kicks[op.Topic], op)
		}
		if op.ID == "" {
			continue
		}
		s := byID[op.ID]
		if s == nil {
			s = &jobHistory{id: op.ID}
			byID[op.ID] = s
			jobs = append(jobs, s)
		}
		s.take(op)
	}
	return jobs, byID, kicks
}

// checkWriteGap is I6: writes go on, and resume soon after each fault.
func checkWriteGap(ops []Op, o Options, r *Report) {
	var done []int64
	for i := range ops {
		if op := &ops[i]; op.writes() {
			done = append(done, op.Complete)
		}
	}
	slices.Sort(done)
	if len(done) == 0 {
		return
	}
	whole := Window{o.From, o.To}
	if whole.From == 0 {
		whole.From = done[0]
	}
	if whole.To == 0 {
		whole.To = done[len(done)-1]
	}
	r.WorstWriteGap = worstGap(done, whole)
	for _, w := range o.Quiet {
		if w.To == 0 {
			w.To = whole.To
		}
		gap := worstGap(done, w)
		r.WorstQuietGap = max(r.WorstQuietGap, gap)
		if o.MaxQuietGap > 0 && gap > o.MaxQuietGap {
			r.Violate("I6", "", "no write succeeded for %v in the time without a fault that began at %d; the bound is %v", gap, w.From, o.MaxQuietGap)
		}
	}
}

// worstGap is the longest stretch of a window that has none of the sorted instants.
func worstGap(instants []int64, w Window) time.Duration {
	var worst time.Duration
	last := w.From
	first, _ := slices.BinarySearch(instants, w.From)
	for _, at := range instants[first:] {
		if at > w.To {
			break
		}
		worst = max(worst, micros(at-last))
		last = at
	}
	return max(worst, micros(w.To-last))
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
