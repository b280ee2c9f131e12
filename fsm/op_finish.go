package fsm

import "tarry/job/jobpb"

// findDone is findReserved for a finish. The job is in the list from: not in
// listReserved when the finish is late and its topic accepts that.
//
// A late finish is as good as one in time when nobody else has anything to do with
// the job: it was not handed out since, which would be another generation, and nobody
// asked for another run of it by an update or by postponing it. Falling due, dying of
// the last attempt, a kick and a move change nothing about the work that is done.
func (x *tx) findDone(ref *jobpb.Ref, r *jobpb.Result) (rec *record, t *topic, from listKind, err error) {
	rec, t, err = x.findUnfenced(ref, r)
	if rec == nil || err != nil {
		return nil, nil, listNone, err
	}
	generation := ref.GetGeneration()
	switch {
	case generation == 0:
		if !x.mayEnd(ref, rec, t, r) {
			return nil, nil, listNone, nil
		}
	case rec.isHeldBy(generation):
	case rec.status.timedOut && rec.status.generation == generation && t.settings.GetLateFinish() == jobpb.LateFinish_LATE_FINISH_ACCEPT:
		from, err = x.listOf(t, rec)
		return rec, t, from, err
	default:
		return nil, nil, listNone, x.refuseStale(rec, r)
	}
	return rec, t, listReserved, nil
}

// finish removes a job whose work is done.
func (x *tx) finish(op *jobpb.Finish, r *jobpb.Result) error {
	rec, t, from, err := x.findDone(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	t.finished++
	return x.endJob(t, rec, from, jobpb.Event_FINISHED, "")
}
