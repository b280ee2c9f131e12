package fsm

import (
	"tarry/job/jobpb"
)

// purge deletes jobs of one list of a topic. A reserved job belongs to its
// consumer; there is no purge of those.
func (x *tx) purge(op *jobpb.Purge, r *jobpb.Result) error {
	switch op.State {
	case jobpb.State_STATE_DELAYED, jobpb.State_STATE_READY, jobpb.State_STATE_DEAD:
	default:
		return x.refuse(r, jobpb.Code_INVALID, "state is %s; it must be delayed, ready or dead", op.State)
	}
	if op.Max < 1 || op.Max > x.limits().MaxKick {
		return x.refuse(r, jobpb.Code_INVALID, "max is %d; it must be between 1 and %d", op.Max, x.limits().MaxKick)
	}
	if err := x.checkSweep(op.Sweep); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	r.Count = 0
	t := x.m.topics[op.Topic]
	if t == nil {
		return nil
	}
	return x.sweep(t, op.State, op.Max, op.Sweep, r, func(rec *record, _ int64, _ uint64) error {
		t.deleted++
		return x.end(t, rec, op.State, jobpb.Event_DELETED, "")
	})
}
