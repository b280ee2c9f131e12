package history

import (
	"maps"
	"slices"
)

// batch is what the calls of one Group asked for.
type batch struct {
	ops  []*Op
	jobs []*jobHistory // that only this group adds
}

// checkBatches judges calls that are done as a whole or not at all. After the
// drain every job that was ever there has been handed out, so one job of a batch tells
// whether all of it was done. Where it was not, calls of unknown outcome become
// failed ones, and the other rules take it from there.
func checkBatches(ops []Op, byID map[string]*jobHistory, r *Report) {
	batches := map[uint64]*batch{}
	for i := range ops {
		op := &ops[i]
		if op.Group == 0 {
			continue
		}
		b := batches[op.Group]
		if b == nil {
			b = &batch{}
			batches[op.Group] = b
		}
		b.ops = append(b.ops, op)
		if s := byID[op.ID]; op.Kind == Add && s.onlyIn(op.Group) && !slices.Contains(b.jobs, s) {
			b.jobs = append(b.jobs, s)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(batches)) {
		batches[n].check(byID, r)
	}
}

func (b *batch) check(byID map[string]*jobHistory, r *Report) {
	there := slices.IndexFunc(b.jobs, (*jobHistory).seen)
	missing := slices.IndexFunc(b.jobs, func(s *jobHistory) bool { return len(s.deliveries) == 0 && !s.explained() })
	switch {
	case there >= 0 && missing >= 0:
		r.Violate("batch", b.jobs[missing].id, "it was never handed out, but job %q was there, which came with it or not at all", b.jobs[there].id)
	case there >= 0:
		b.checkFinished(byID, r)
	case missing >= 0:
		for _, op := range b.ops {
			if op.Outcome == Unknown {
				op.Outcome, op.Code = Fail, ""
			}
		}
	}
}

// checkFinished: where the jobs of a finish that adds some are there, it is done.
func (b *batch) checkFinished(byID map[string]*jobHistory, r *Report) {
	for _, f := range b.ops {
		if f.Kind != Finish || !f.maybe() {
			continue
		}
		for _, d := range byID[f.ID].deliveries {
			if d.Seq == f.Seq && d.Generation > f.Generation {
				r.Violate("batch", f.ID, "delivered again (generation %d) though the jobs that came with its finish were there", d.Generation)
			}
		}
	}
}

// onlyIn reports whether all adds of the job are of one group.
func (s *jobHistory) onlyIn(group uint64) bool {
	return !slices.ContainsFunc(s.adds, func(a *Op) bool { return a.Group != group })
}

// seen reports whether the job was certainly there once.
func (s *jobHistory) seen() bool {
	ok := func(o *Op) bool { return o.Outcome == OK && o.State != Gone }
	return len(s.deliveries) > 0 || slices.ContainsFunc(s.adds, ok) || slices.ContainsFunc(s.gets, ok)
}

// explained reports whether the job may have been there without being handed out.
func (s *jobHistory) explained() bool {
	_, purged := s.purgedFrom()
	_, dropped := s.droppedFrom()
	return purged || dropped || slices.ContainsFunc(s.deletes, (*Op).maybe)
}
