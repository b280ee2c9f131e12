package fsm

import (
	"tarry/fsm/internal/record"
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
	list := record.ListOfState(op.State)
	err := x.sweep(t, list, op.Max, op.Sweep, r, nil, func(rec *record.Job, _ int64, _ uint64) error {
		t.Deleted++
		return x.endJob(t, rec, list, jobpb.Event_DELETED, "")
	})
	if err == nil && op.DropEmpty && t.Jobs() == 0 {
		x.dropTopic(t)
	}
	return err
}
