package fsm

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// moveJobs puts jobs of one topic, or one job, into another topic. Jobs that the
// topic only retains stay.
func (x *tx) moveJobs(op *jobpb.MoveJobs, r *jobpb.Result) error {
	if err := x.checkMoveJobs(op); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	if op.Ref != nil {
		return x.moveOne(op, r)
	}
	r.Count, r.More = 0, false
	t := x.m.topics[op.Topic]
	wanted := func(s jobpb.State) bool { return len(op.States) == 0 || slices.Contains(op.States, s) }
	var left uint64
	for s := jobpb.State_STATE_DELAYED; t != nil && s <= jobpb.State_STATE_DEAD; s++ {
		if wanted(s) {
			left += t.counts[s]
		}
	}
	if left == 0 {
		return nil
	}
	target := x.target(op.To, r)
	if target == nil {
		return nil
	}
	if left == t.jobs() && target.jobs() == 0 && left < 1<<32 {
		x.exchange(t, target)
		r.Count = uint32(left)
		return nil
	}
	bytes := 0
	for s := jobpb.State_STATE_DELAYED; s <= jobpb.State_STATE_DEAD; s++ {
		for wanted(s) && t.counts[s] > 0 && r.Count < op.Max && bytes < sweepBytes {
			p, _, err := x.head(t, s)
			if err != nil {
				return err
			}
			rec, err := x.job(p.seq, false)
			if err != nil {
				return err
			}
			if rec == nil {
				return missing(p.seq, t, s)
			}
			if err := x.relocate(t, target, rec, s); err != nil {
				return err
			}
			bytes += rec.bodyLen
			r.Count++
			left--
		}
	}
	r.More = left > 0
	return nil
}

func (x *tx) checkMoveJobs(op *jobpb.MoveJobs) error {
	if err := x.limits().CheckTopic("to", op.To); err != nil {
		return err
	}
	if op.Ref != nil {
		return nil
	}
	switch {
	case op.Topic == op.To:
		return job.Errorf(job.CodeInvalid, "to is %.40q, the topic itself", op.To)
	case op.Max < 1 || op.Max > x.limits().MaxKick:
		return job.Errorf(job.CodeInvalid, "max is %d; it must be between 1 and %d", op.Max, x.limits().MaxKick)
	}
	for _, s := range op.States {
		if s <= jobpb.State_STATE_NONE || s > jobpb.State_STATE_DEAD {
			return job.Errorf(job.CodeInvalid, "states has %d; this release knows only 1 to 4", s)
		}
	}
	return nil
}

// moveOne moves the job that op names. One that is there already stays.
func (x *tx) moveOne(op *jobpb.MoveJobs, r *jobpb.Result) error {
	rec, t, err := x.find(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	state, err := x.stateOf(t, rec)
	if err != nil {
		return err
	}
	if t.name != op.To {
		target := x.target(op.To, r)
		if target == nil {
			return nil
		}
		if err := x.relocate(t, target, rec, state); err != nil {
			return err
		}
	}
	r.State, r.Revision = state, rec.revision
	return nil
}

// target is the topic that jobs are moved to, made if it is not there; nil: that
// is refused. The name is known to be good. The caller puts a job into it.
func (x *tx) target(name string, r *jobpb.Result) *topic {
	if t := x.m.topics[name]; t != nil {
		return t
	}
	if x.topicsAtLimit() {
		_ = x.refuseTopic(name, r)
		return nil
	}
	return x.newTopic(name)
}

// relocate moves a job to another topic, in the state in which it is. A dead one
// stands behind those that died there.
func (x *tx) relocate(t, target *topic, rec *record, state jobpb.State) error {
	return x.transfer(t, target, rec, state, state, func(f *fate) {
		if state == jobpb.State_STATE_DEAD {
			f.rank = target.rank
			target.rank++
		}
	})
}

// exchange gives each of two topics the jobs of the other, by giving it the
// other's number: no job is touched. What belongs to the names stays with them:
// totals, pause, settings.
func (x *tx) exchange(t, u *topic) {
	// The heap orders by number.
	x.m.due.set(t, 0)
	x.m.due.set(u, 0)
	t.number, u.number = u.number, t.number
	t.counts, u.counts = u.counts, t.counts
	t.covered, u.covered = u.covered, t.covered
	t.heads, u.heads = u.heads, t.heads
	t.rank, u.rank = u.rank, t.rank
	t.urgent, u.urgent = u.urgent, t.urgent
	t.windows, u.windows = u.windows, t.windows
	for _, one := range [...]*topic{t, u} {
		x.m.byNumber[one.number] = one
		x.key = appendNumberKey(x.key[:0], one.number)
		must(x.batch.Set(x.key, []byte(one.name), nil))
		if one.jobs() == 0 {
			one.emptySince = x.clock()
		}
		x.touch(one)
	}
}
