package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// bury makes a reserved job dead.
func (x *tx) bury(op *jobpb.Bury, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	err = x.move(t, rec, record.ListReserved, record.ListDead, func(s *record.Status) {
		s.SetPriority(op.SetPriority, op.Priority)
		s.SetReason(op.Reason)
		s.Buries++
		x.setDead(t, s)
		x.recordEvent(t, rec, jobpb.Event_BURIED, record.ListDead, s.Attempts, op.Reason)
	})
	r.State, r.Revision = jobpb.State_STATE_DEAD, rec.Status.Revision
	return err
}
