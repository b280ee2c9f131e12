package fsm

import (
	"tarry/job/jobpb"
)

// purge deletes delayed, ready or dead jobs of a topic, and the topic if it should and has no jobs
// then.
func (x *tx) purge(op *jobpb.Purge, r *jobpb.Result) error {
	if err := x.checkStart(op.Sweep); err != nil {
		return x.refuseInvalid(err, r)
	}
	t := x.m.topics[op.Topic]
	if t == nil {
		return nil
	}
	list := listOfState(op.State)
	err := x.sweep(t, list, op.Max, op.Sweep, r, nil, func(rec *record, _ int64, _ uint64) error {
		t.deleted++
		return x.endJob(t, rec, list, jobpb.Event_DELETED, "")
	})
	if err == nil && op.DropEmpty && t.jobs() == 0 {
		x.dropTopic(t)
	}
	return err
}
