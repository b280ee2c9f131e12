package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// kick makes a dead or delayed job ready, in its topic or in another.
func (x *tx) kick(op *jobpb.Kick, r *jobpb.Result) error {
	rec, t, from, err := x.findListed(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if ok, err := x.meets(op.Condition, t, rec, from, r); !ok || err != nil {
		return err
	}
	if from != record.ListDead && from != record.ListDelayed {
		return x.refuse(r, jobpb.Code_NOT_KICKABLE, "job %.40q is neither dead nor delayed", x.name(rec))
	}
	target := t
	if op.ToTopic != "" {
		if ok, err := x.checkTarget(t, op.ToTopic, rec, r); !ok || err != nil {
			return err
		}
		if !x.roomFor(rec, t, op.ToTopic, r) {
			return nil
		}
		if target = x.targetTopic(op.ToTopic, r); target == nil {
			return nil
		}
	}
	if from == record.ListDead {
		err = x.kickDead(t, target, rec)
	} else {
		err = x.kickDelayed(t, target, rec)
	}
	r.State, r.DueMs, r.Revision = jobpb.State_STATE_READY, rec.Status.DueMS, rec.Status.Revision
	return err
}

// kickDead makes a dead job ready, with its attempt count reset.
func (x *tx) kickDead(t, target *topic, rec *record.Job) error {
	return x.moveTo(t, target, rec, record.ListDead, record.ListReady, func(s *record.Status) {
		revive(s)
		x.restartExpiry(target, s)
		x.recordEvent(target, rec, jobpb.Event_KICKED, record.ListReady, 0, "")
	})
}

func revive(s *record.Status) {
	s.Attempts = 0
	s.Kicks++
	s.SetWaiting()
}

// kickDelayed makes a delayed job ready.
func (x *tx) kickDelayed(t, target *topic, rec *record.Job) error {
	return x.moveTo(t, target, rec, record.ListDelayed, record.ListReady, func(s *record.Status) {
		s.DueMS = x.clock()
		s.Kicks++
		x.recordEvent(target, rec, jobpb.Event_KICKED, record.ListReady, s.Attempts, "")
	})
}

// kickTopic makes dead jobs of a topic ready, the longest dead first. With or_delayed, if
// none is dead, it makes delayed ones ready, the earliest due first.
func (x *tx) kickTopic(op *jobpb.KickTopic, r *jobpb.Result) error {
	t := x.m.topics[op.Topic]
	if op.Sweep != nil {
		return x.kickSweep(op, t, r)
	}
	if t == nil {
		return nil
	}
	from, makeReady := record.ListDead, x.kickDead
	if op.OrDelayed && t.Counts[from] == 0 {
		from, makeReady = record.ListDelayed, x.kickDelayed
	}
	for ; r.Count < op.Max; r.Count++ {
		p, ok, err := x.head(t, from)
		if err != nil || !ok {
			return err
		}
		rec, err := x.jobIn(t, from, p.Seq, false)
		if err != nil {
			return err
		}
		if err := makeReady(t, t, rec); err != nil {
			return err
		}
	}
	return nil
}

// kickSweep kicks the dead jobs that a sweep selects, all at once or at a rate, in their
// topic or another.
func (x *tx) kickSweep(op *jobpb.KickTopic, t *topic, r *jobpb.Result) error {
	if err := x.checkStart(op.Sweep); err != nil {
		return x.refuseInvalid(err, r)
	}
	if t == nil || t.Counts[record.ListDead] == 0 {
		return nil
	}
	target := t
	if op.ToTopic != "" {
		if !x.checkTargetOfAll(t, op.ToTopic, r) {
			return nil
		}
		// A new topic is made only when there is a job for it.
		if target = x.m.topics[op.ToTopic]; target == nil && x.topicsAtLimit() {
			return x.refuseTopic(op.ToTopic, r)
		}
	}
	full := "" // why the next job has no room in the namespace of the target
	err := x.sweep(t, record.ListDead, op.Max, op.Sweep, r, nil, func(rec *record.Job, startMS int64, k uint64) error {
		if target != t {
			if full = x.lacksRoom(rec, t, op.ToTopic); full != "" {
				return errNoRoom
			}
		}
		if target == nil {
			target = x.newTopic(op.ToTopic)
		}
		if op.RateMilli == 0 {
			return x.kickDead(t, target, rec)
		}
		return x.kickDeadAt(t, target, rec, startMS+int64(min(k*1_000_000/uint64(op.RateMilli), uint64(x.limits().MaxDelay.Milliseconds()))))
	})
	if err == nil && full != "" && r.Count == 0 {
		return x.refuse(r, jobpb.Code_OVER_QUOTA, "%s", full)
	}
	return err
}

// kickDeadAt is kickDead with a due instant, to which the topic's spread is not added.
func (x *tx) kickDeadAt(t, target *topic, rec *record.Job, dueMS int64) error {
	to, now := record.ListReady, x.clock()
	if dueMS > now {
		to = record.ListDelayed
	}
	return x.moveTo(t, target, rec, record.ListDead, to, func(s *record.Status) {
		revive(s)
		s.DueMS = max(dueMS, now)
		if s.ExpiresMS <= s.DueMS {
			s.ExpiresMS = 0
		}
		s.LastDelayMS = s.DueMS - now
		x.recordEvent(target, rec, jobpb.Event_KICKED, to, 0, "")
	})
}
