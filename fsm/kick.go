package fsm

import (
	"tarry/job/jobpb"
)

// kick makes a dead or delayed job ready, in its topic or in another.
func (x *tx) kick(op *jobpb.Kick, r *jobpb.Result) error {
	if op.ToTopic != "" {
		if err := x.limits().CheckTopic("to_topic", op.ToTopic); err != nil {
			return x.refuse(r, jobpb.Code_INVALID, "%s", err)
		}
	}
	rec, t, err := x.find(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	state, err := x.stateOf(t, rec)
	if err != nil {
		return err
	}
	if state != jobpb.State_STATE_DEAD && state != jobpb.State_STATE_DELAYED {
		return x.refuse(r, jobpb.Code_NOT_KICKABLE, "job %.40q is neither dead nor delayed", x.name(rec))
	}
	target := t
	if op.ToTopic != "" {
		if target = x.target(op.ToTopic, r); target == nil {
			return nil
		}
	}
	if state == jobpb.State_STATE_DEAD {
		err = x.revive(t, target, rec)
	} else {
		err = x.hasten(t, target, rec)
	}
	r.State, r.DueMs, r.Revision = jobpb.State_STATE_READY, rec.fate.dueMS, rec.revision
	return err
}

// revive makes a dead job ready, with all its attempts before it again.
func (x *tx) revive(t, target *topic, rec *record) error {
	return x.transfer(t, target, rec, jobpb.State_STATE_DEAD, jobpb.State_STATE_READY, func(f *fate) {
		f.revive()
		x.begin(target, f)
		x.note(target, rec, jobpb.Event_KICKED, jobpb.State_STATE_READY, 0, "")
	})
}

func (f *fate) revive() {
	f.attempts = 0
	f.kicks++
	f.wait()
}

// hasten makes a delayed job ready.
func (x *tx) hasten(t, target *topic, rec *record) error {
	return x.transfer(t, target, rec, jobpb.State_STATE_DELAYED, jobpb.State_STATE_READY, func(f *fate) {
		f.dueMS = x.clock()
		f.kicks++
		x.note(target, rec, jobpb.Event_KICKED, jobpb.State_STATE_READY, f.attempts, "")
	})
}

// kickTopic makes dead jobs of a topic ready, the longest dead first; with
// or_delayed, and when there is none, delayed ones, the earliest due first.
func (x *tx) kickTopic(op *jobpb.KickTopic, r *jobpb.Result) error {
	if op.Max < 1 || op.Max > x.limits().MaxKick {
		return x.refuse(r, jobpb.Code_INVALID, "max is %d; it must be between 1 and %d", op.Max, x.limits().MaxKick)
	}
	r.Count = 0
	t := x.m.topics[op.Topic]
	if op.Sweep != nil {
		return x.kickSweep(op, t, r)
	}
	if t == nil {
		return nil
	}
	from, makeReady := jobpb.State_STATE_DEAD, x.revive
	if op.OrDelayed && t.counts[from] == 0 {
		from, makeReady = jobpb.State_STATE_DELAYED, x.hasten
	}
	for ; r.Count < op.Max; r.Count++ {
		p, ok, err := x.head(t, from)
		if err != nil || !ok {
			return err
		}
		rec, err := x.job(p.seq, false)
		if err != nil {
			return err
		}
		if rec == nil {
			return missing(p.seq, t, from)
		}
		if err := makeReady(t, t, rec); err != nil {
			return err
		}
	}
	return nil
}

// kickSweep kicks the dead jobs that a sweep finds: all at once, or one after the
// other at a rate, where they are or in another topic.
func (x *tx) kickSweep(op *jobpb.KickTopic, t *topic, r *jobpb.Result) error {
	if err := x.checkSweep(op.Sweep); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	if op.ToTopic != "" {
		if err := x.limits().CheckTopic("to_topic", op.ToTopic); err != nil {
			return x.refuse(r, jobpb.Code_INVALID, "%s", err)
		}
	}
	if t == nil || t.counts[jobpb.State_STATE_DEAD] == 0 {
		return nil
	}
	target := t
	if op.ToTopic != "" {
		// Made only when there is a job for it.
		if target = x.m.topics[op.ToTopic]; target == nil && x.topicsAtLimit() {
			return x.refuseTopic(op.ToTopic, r)
		}
	}
	return x.sweep(t, jobpb.State_STATE_DEAD, op.Max, op.Sweep, r, func(rec *record, startMS int64, k uint64) error {
		if target == nil {
			target = x.newTopic(op.ToTopic)
		}
		if op.RateMilli == 0 {
			return x.revive(t, target, rec)
		}
		return x.reviveAt(t, target, rec, startMS+int64(min(k*1_000_000/uint64(op.RateMilli), uint64(x.limits().MaxDelay.Milliseconds()))))
	})
}

// reviveAt is revive for a job that is to wait until an instant. It is exact: no
// spread of the topic comes on top of the rate.
func (x *tx) reviveAt(t, target *topic, rec *record, dueMS int64) error {
	to, now := jobpb.State_STATE_READY, x.clock()
	if dueMS > now {
		to = jobpb.State_STATE_DELAYED
	}
	return x.transfer(t, target, rec, jobpb.State_STATE_DEAD, to, func(f *fate) {
		f.revive()
		f.dueMS = max(dueMS, now)
		f.lastDelayMS = f.dueMS - now
		x.note(target, rec, jobpb.Event_KICKED, to, 0, "")
	})
}
