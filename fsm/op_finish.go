package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// findDone is findReserved for a finish. It also returns the job's list, which is not
// ListReserved if the finish is late and its topic accepts that.
//
// A late finish is accepted unless the job was reserved since, which is another
// generation, or an update or a postpone asked for another run. Falling due, dying, a kick
// and a move do not matter: the work is done.
func (x *tx) findDone(ref *jobpb.Ref, r *jobpb.Result) (rec *record.Job, t *topic, from record.List, err error) {
	rec, t, err = x.findUnfenced(ref, r)
	if rec == nil || err != nil {
		return nil, nil, record.ListNone, err
	}
	generation := ref.GetGeneration()
	switch {
	case generation == 0:
		if !x.checkReserved(ref, rec, t, r) {
			return nil, nil, record.ListNone, nil
		}
	case rec.IsHeldBy(generation):
	case rec.Status.TimedOut && rec.Status.Generation == generation && t.settings.GetLateFinish() == jobpb.LateFinish_LATE_FINISH_ACCEPT:
		from, err = x.listOf(t, rec)
		return rec, t, from, err
	default:
		return nil, nil, record.ListNone, x.refuseStale(rec, r)
	}
	return rec, t, record.ListReserved, nil
}

// finish ends a job whose work is done.
func (x *tx) finish(op *jobpb.Finish, r *jobpb.Result) error {
	rec, t, from, err := x.findDone(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	t.Finished++
	return x.endJob(t, rec, from, jobpb.Event_FINISHED, "")
}
