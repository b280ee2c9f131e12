package fsm

import "tarry/job/jobpb"

// touchJob restarts a reservation's time to run.
func (x *tx) touchJob(op *jobpb.Touch, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	ttr := op.TtrMs
	if ttr == 0 {
		ttr = rec.status.ttrMS
	}
	err = x.move(t, rec, listReserved, listReserved, func(s *jobStatus) {
		s.setReserved(x.after(ttr))
	})
	r.State, r.ReservedUntilMs, r.Revision = jobpb.State_STATE_RESERVED, rec.status.reservedUntilMS(), rec.status.revision
	return err
}
