package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// releaseTopic releases the reserved jobs of a topic that a sweep selects, as their
// consumers could: an attempt is over, and after the last one a job is dead. No backoff
// delays them, because it is the consumer that failed.
func (x *tx) releaseTopic(op *jobpb.ReleaseTopic, r *jobpb.Result) error {
	if err := x.checkStart(op.Sweep); err != nil {
		return x.refuseInvalid(err, r)
	}
	t := x.m.topics[op.Topic]
	if t == nil {
		return nil
	}
	if t.settings.GetRequireToken() {
		return x.refuse(r, jobpb.Code_TOKEN_REQUIRED, "topic %.40q requires the token of each reservation, so its jobs are not released together", t.name)
	}
	release := &jobpb.Release{Reason: op.Reason}
	held := func(rec *record.Job) bool { return op.Consumer == "" || rec.Status.ReservedBy == op.Consumer }
	return x.sweep(t, record.ListReserved, op.Max, op.Sweep, r, held, func(rec *record.Job, _ int64, _ uint64) error {
		_, err := x.giveBack(t, rec, release)
		return err
	})
}
