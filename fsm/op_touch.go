package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// touchJob restarts a reservation's time to run.
func (x *tx) touchJob(op *jobpb.Touch, r *jobpb.Result) error {
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	ttr := op.TtrMs
	if ttr == 0 {
		ttr = rec.Status.TtrMS
	}
	err = x.move(t, rec, record.ListReserved, record.ListReserved, func(s *record.Status) {
		s.SetReserved(x.after(ttr))
	})
	r.State, r.ReservedUntilMs, r.Revision = jobpb.State_STATE_RESERVED, rec.Status.ReservedUntilMS(), rec.Status.Revision
	return err
}
