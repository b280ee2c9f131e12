package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// overQuota is the Code of an add for which its namespace has no room.
const overQuota = "over_quota"

// checkQuotas holds namespaces to their quotas, which were set before their first job. Their jobs
// stay in their topics.
func checkQuotas(ops []Op, jobs []*jobHistory, o Options, r *Report) {
	for i := range ops {
		q := &ops[i]
		if q.Kind != Quota || q.Outcome != OK {
			continue
		}
		inside := slices.DeleteFunc(slices.Clone(jobs), func(s *jobHistory) bool { return !strings.HasPrefix(s.topic(), q.Topic) })
		if q.Limits.Jobs > 0 {
			checkRoom(q, inside, r)
		}
		if q.Limits.AddRate > 0 {
			checkAddRate(q, inside, o, r)
		}
	}
}

// checkRoom: a namespace never has more jobs than its quota, and refuses none while it has room.
func checkRoom(q *Op, jobs []*jobHistory, r *Report) {
	var certain []lease
	var begins, ends []int64 // of lives that there may have been
	var refused []*Op
	for _, s := range jobs {
		lives := map[uint64]*lease{}
		for _, a := range s.adds {
			if a.Outcome == OK && (lives[a.Seq] == nil || a.Complete < lives[a.Seq].from) {
				lives[a.Seq] = &lease{a.Complete, s.endOf(a.Seq), a}
			}
			if a.Outcome == Fail && a.Code == overQuota && a.Group == 0 { // a group needs room for all of it
				refused = append(refused, a)
			}
		}
		for _, life := range lives {
			certain = append(certain, *life)
		}
		b, e := s.possibleLives()
		begins, ends = append(begins, b...), append(ends, e...)
	}
	if last, n := mostHeld(certain); n > q.Limits.Jobs {
		r.Violate("quota", last.op.ID, "namespace %s had %d jobs when it was added; the quota is %d", q.Topic, n, q.Limits.Jobs)
	}
	slices.Sort(begins)
	slices.Sort(ends)
	for _, a := range refused {
		begun, _ := slices.BinarySearch(begins, a.Complete+1)
		ended, _ := slices.BinarySearch(ends, a.Invoke)
		if begun-ended < q.Limits.Jobs {
			r.Violate("quota", a.ID, "refused by %s, though namespace %s had %d jobs at most; the quota is %d", a.Node, q.Topic, begun-ended, q.Limits.Jobs)
		}
	}
}

// possibleLives returns from when on the lives of the job may have been there, and until when. The drain
// has handed out what no client deleted, so a life that no client saw was none.
func (s *jobHistory) possibleLives() (begins, ends []int64) {
	first := int64(math.MaxInt64)
	for _, a := range s.adds {
		if a.maybe() {
			first = min(first, a.Invoke)
		}
	}
	seen := map[uint64]bool{}
	for _, ops := range [][]*Op{s.adds, s.deliveries, s.gets, s.deletes} {
		for _, op := range ops {
			if op.maybe() && op.Seq != 0 {
				seen[op.Seq] = true
			}
		}
	}
	for seq := range seen {
		begins, ends = append(begins, first), append(ends, s.goneBy(seq))
	}
	if len(seen) == 0 && first < math.MaxInt64 && slices.ContainsFunc(s.deletes, (*Op).maybe) {
		begins, ends = append(begins, first), append(ends, math.MaxInt64)
	}
	return begins, ends
}

// goneBy is the instant at which a client knew that a life of the job had ended; MaxInt64: none did.
func (s *jobHistory) goneBy(seq uint64) int64 {
	by := int64(math.MaxInt64)
	for _, ops := range [][]*Op{s.finishes, s.deletes} {
		for _, op := range ops {
			if ended := op.Outcome == OK || op.Outcome == Fail && op.Code == notFound && op.Seq != 0; ended && op.Seq == seq {
				by = min(by, op.Complete)
			}
		}
	}
	return by
}

// checkAddRate counts the jobs that were certainly added through a node between two instants. It judges
// times without faults only: a node that restarts has a whole second's adds again, and one that has lost
// its state learns the quota with it. What follows a finish counts and is never refused.
func checkAddRate(q *Op, jobs []*jobHistory, o Options, r *Report) {
	added := map[string][]*Op{} // by node, in the order of their beginnings
	for _, s := range jobs {
		for _, a := range s.adds {
			if a.Outcome == OK && a.Result == created && a.Group == 0 {
				added[a.Node] = append(added[a.Node], a)
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(added)) {
		adds := added[node]
		slices.SortFunc(adds, func(a, b *Op) int { return cmp.Compare(a.Invoke, b.Invoke) })
		for _, w := range o.settled() {
			from, _ := slices.BinarySearchFunc(adds, w.From, func(a *Op, at int64) int { return cmp.Compare(a.Invoke, at) })
			to, _ := slices.BinarySearchFunc(adds, w.To, func(a *Op, at int64) int { return cmp.Compare(a.Invoke, at) })
			if n, at := q.Limits.overRate(adds[from:to], w.To); n > 0 {
				r.Violate("rate", adds[from].ID, "%s added %d jobs to namespace %s until %d; it may add %v a second", node, n, q.Topic, at, q.Limits.AddRate)
			}
		}
	}
}

// overRate returns how many adds too many were done by an instant, with all of those of that time; 0:
// as many as the rate allows.
func (l *Limits) overRate(adds []*Op, until int64) (n int, at int64) {
	for i, first := range adds {
		var done []int64
		for _, a := range adds[i:] {
			if a.Complete <= until {
				done = append(done, a.Complete)
			}
		}
		slices.Sort(done)
		for k, at := range done {
			// One more, because clocks differ in their rates.
			if allowed := max(1, l.AddRate) + l.AddRate*micros(at-first.Invoke).Seconds() + 1; float64(k+1) > allowed {
				return k + 1, at
			}
		}
	}
	return 0, 0
}
