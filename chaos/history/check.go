package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options bound what Check accepts.
type Options struct {
	// ClockBound is how far the clocks of nodes and clients may be apart,
	// rounding to milliseconds included.
	ClockBound time.Duration
	// MaxWriteGap is the longest accepted stretch without a successful write
	// between From and To; 0 measures without judging.
	MaxWriteGap time.Duration
	// From and To bound the time under load, in the recorder's microseconds; 0
	// means the whole history.
	From, To int64
}

// Violation is one broken invariant.
type Violation struct {
	Invariant string // "I1" to "I8"
	ID        string // the job, when there is one
	Message   string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Invariant, v.ID, v.Message) }

// maxKept bounds the violations kept of one invariant; the rest are counted.
const maxKept = 10

// Report is the verdict on a history.
type Report struct {
	Ops           int
	ByKind        [kinds][outcomes]int
	Jobs          int           // ids of which at least one add was acknowledged
	Recovered     int           // ids delivered though no add was acknowledged
	Redeliveries  int           // deliveries of a job after its first
	WorstWriteGap time.Duration // longest stretch without a successful write
	WorstLateness time.Duration // longest time from due to delivery, first deliveries only
	Violations    []Violation
	Found         map[string]int // violations by invariant, those not kept included
}

// OK reports whether no invariant was broken.
func (r *Report) OK() bool { return len(r.Found) == 0 }

// Unknowns counts the calls of which nobody knows the outcome.
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
	for k, n := range r.ByKind {
		fmt.Fprintf(&b, "  %-10s ok %d, fail %d, unknown %d\n", Kind(k), n[OK], n[Fail], n[Unknown])
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  VIOLATION %v\n", v)
	}
	return b.String()
}

// Check judges a history that ends with a full drain: every job still there was
// delivered and finished. Its cost is linear in the history, but for sorting the
// few operations of each job and the instants of the writes.
func Check(ops []Op, o Options) *Report {
	r := &Report{Ops: len(ops), Found: map[string]int{}}
	jobs, kicks := group(ops, r)
	for _, s := range jobs {
		s.options, s.report, s.kicks = o, r, kicks[s.topic()]
		s.check()
	}
	checkWriteGap(ops, o, r)
	return r
}

func (r *Report) violate(invariant, id, format string, args ...any) {
	r.Found[invariant]++
	if r.Found[invariant] <= maxKept {
		r.Violations = append(r.Violations, Violation{invariant, id, fmt.Sprintf(format, args...)})
	}
}

// group sorts the operations by job, in the order of the first mention of each,
// and the kicks by topic.
func group(ops []Op, r *Report) (jobs []*story, kicks map[string][]*Op) {
	byID := map[string]*story{}
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
			s = &story{id: op.ID}
			byID[op.ID] = s
			jobs = append(jobs, s)
		}
		s.take(op)
	}
	return jobs, kicks
}

// checkWriteGap is I6: writes go on, and resume soon after each fault.
func checkWriteGap(ops []Op, o Options, r *Report) {
	var done []int64
	for i := range ops {
		op := &ops[i]
		inside := op.Complete >= o.From && (o.To == 0 || op.Complete <= o.To)
		if op.Outcome == OK && inside {
			done = append(done, op.Complete)
		}
	}
	if o.From != 0 {
		done = append(done, o.From)
	}
	if o.To != 0 {
		done = append(done, o.To)
	}
	slices.SortFunc(done, cmp.Compare)
	for i := 1; i < len(done); i++ {
		r.WorstWriteGap = max(r.WorstWriteGap, micros(done[i]-done[i-1]))
	}
	if o.MaxWriteGap > 0 && r.WorstWriteGap > o.MaxWriteGap {
		r.violate("I6", "", "no write succeeded for %v; the bound is %v", r.WorstWriteGap, o.MaxWriteGap)
	}
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
