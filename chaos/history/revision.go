package history

import "slices"

// checkRevisions judges what answers said of the job's revision: it grows with
// each change, and a condition on one lets a single call through.
func (s *jobHistory) checkRevisions() {
	passed := map[[2]uint64]bool{} // by seq and the revision of the condition
	var told []*Op
	for _, ops := range [][]*Op{s.adds, s.updates, s.fenced, s.deletes, s.jobKicks, s.gets} {
		for _, op := range ops {
			if op.Outcome != OK || op.Seq == 0 {
				continue
			}
			if op.Revision != 0 {
				told = append(told, op)
			}
			if op.IfRevision == 0 || op.Result == created || op.Result == replaced {
				continue
			}
			if passed[[2]uint64{op.Seq, op.IfRevision}] {
				s.report.Violate("revision", s.id, "two calls were let through on condition of revision %d of seq %d", op.IfRevision, op.Seq)
			}
			passed[[2]uint64{op.Seq, op.IfRevision}] = true
			if op.Revision != 0 && op.Revision != op.IfRevision+1 {
				s.report.Violate("revision", s.id, "%s on condition of revision %d left revision %d", op.Kind, op.IfRevision, op.Revision)
			}
		}
	}
	for _, op := range told {
		if slices.ContainsFunc(told, func(before *Op) bool {
			if before.Seq != op.Seq || before.Complete >= op.Invoke {
				return false
			}
			return before.Revision > op.Revision || (before.Revision == op.Revision && op.changes())
		}) {
			s.report.Violate("revision", s.id, "%s of seq %d found or left revision %d after a later one was known", op.Kind, op.Seq, op.Revision)
		}
	}
}

// changes reports whether a call that succeeded changed a job that was there.
func (o *Op) changes() bool {
	return !o.Kind.reads() && (o.Kind != Add || o.Result == postponed)
}
