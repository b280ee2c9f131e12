package fsm

import "tarry/job/jobpb"

// bury makes a reserved job dead.
func (x *tx) bury(op *jobpb.Bury, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	err = x.move(t, rec, listReserved, listDead, func(s *jobStatus) {
		s.setPriority(op.SetPriority, op.Priority)
		s.setReason(op.Reason)
		s.buries++
		x.setDead(t, s)
		x.recordEvent(t, rec, jobpb.Event_BURIED, listDead, s.attempts, op.Reason)
	})
	r.State, r.Revision = jobpb.State_STATE_DEAD, rec.status.revision
	return err
}
