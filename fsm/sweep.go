package fsm

import (
	"errors"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// sweep walks over a part of one list and calls act for up to most of the jobs that the
// filter selects, and also, if it is given; k counts them over all the commands of a sweep. The result has the
// number of jobs and where the next command continues. act may change the list.
//
// Jobs that died after the sweep began are not part of it. So a sweep over dead jobs ends
// even if the jobs that it kicks die again. One that goes on from another topic has no
// place here yet, but a number of jobs.
//
// If act returns errNoRoom it has done nothing, and the next command continues with that job.
func (x *tx) sweep(
	t *topic, list record.List, most uint32, op *jobpb.Sweep, r *jobpb.Result,
	also func(*record.Job) bool, act func(rec *record.Job, startMS int64, k uint64) error,
) error {
	at := progressOf(op.From)
	if at.startMS == 0 {
		at.startMS = x.clock()
	}
	if op.From.GetAfter() == nil {
		at.limit = t.Rank
	}
	// One more than Scan, to know whether there are more.
	found, err := x.sweptPlaces(t, list, op.Filter, at, int(op.Scan)+1)
	if err != nil {
		return err
	}
	var done uint32
	bytes := 0
	for i, p := range found {
		if i == int(op.Scan) || done == most || bytes >= sweepBytes {
			r.Details = &jobpb.Details{Next: at.proto()}
			break
		}
		before := at.after
		at.after = p
		rec, err := x.jobIn(t, list, p.Seq, false)
		if err != nil {
			return err
		}
		bytes += rec.BodyLen
		ok, err := record.Matches(op.Filter, rec)
		if err != nil {
			return err
		}
		if !ok || also != nil && !also(rec) {
			continue
		}
		if err := act(rec, at.startMS, at.done); err != nil {
			if !errors.Is(err, errNoRoom) {
				return err
			}
			at.after = before
			r.Details = &jobpb.Details{Next: at.proto()}
			break
		}
		done++
		at.done++
	}
	r.Count = done
	return nil
}

// errNoRoom ends a command of a sweep.
var errNoRoom = errors.New("the namespace has no room for the job")

// sweepBytes bounds the jobs that one command of a sweep or a move reads: reading a job
// reads its body.
const sweepBytes = job.MaxReserveBytes

// progress is how far a sweep has come: a jobpb.Progress.
type progress struct {
	after       record.Place
	limit, done uint64
	startMS     int64
}

func progressOf(p *jobpb.Progress) progress {
	return progress{after: record.PlaceOf(p.GetAfter()), limit: p.GetLimit(), done: p.GetDone(), startMS: p.GetStartMs()}
}

func (p *progress) proto() *jobpb.Progress {
	return &jobpb.Progress{After: p.after.Proto(), Limit: p.limit, Done: p.done, StartMs: p.startMS}
}

// checkStart checks that a sweep did not begin ahead of the clock.
func (x *tx) checkStart(op *jobpb.Sweep) error {
	if op.GetFrom().GetStartMs() > x.clock() {
		return job.Invalid("from", "is not a place that this sweep gave")
	}
	return nil
}

// sweptPlaces is places, without the dead jobs that a filter excludes by their exact reason.
func (x *tx) sweptPlaces(t *topic, list record.List, f *jobpb.Filter, at progress, most int) ([]record.Place, error) {
	if list == record.ListDead && f != nil && f.ExactReason != nil {
		return x.groupPlaces(t, *f.ExactReason, at, most)
	}
	return x.places(t, list, at, most)
}

// places returns up to most places behind a sweep's, as of the running transaction.
func (x *tx) places(t *topic, list record.List, at progress, most int) ([]record.Place, error) {
	var found []record.Place
	err := t.windows[list].Walk(at.after.Next(), storedList(x.db, t.listID(list)), func(p record.Place) bool {
		if list == record.ListDead && uint64(p.Instant) >= at.limit {
			return false
		}
		found = append(found, p)
		return len(found) < most
	})
	return found, err
}

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
