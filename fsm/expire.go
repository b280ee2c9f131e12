package fsm

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

// Expiry. While a topic's settings have a time of expiry, its ready jobs also stand
// in its expiring list, in the order of due instants: that is the order of expiry
// too, whatever the time is now, so changing the setting is one write. The head of
// the list tells Advance when a job expires next. Reserve asks the job itself, so it
// passes none on that has expired, listed or not.
//
// Jobs that were ready before the topic had the setting are listed afterwards, a
// bounded number with each Advance, in the order of the ready list.
//
// Invariant: a ready job is listed when, and only when, its place in the ready list
// is not behind the topic's covered place. The first job of an empty ready list
// settles that anew: everything with the setting, nothing without. So a topic
// that never had it pays nothing, and one that has it no more stops paying as soon as
// it has no ready job.

// listExpiring is the list of ready jobs that may expire, beside their place in
// the ready list. It is no state; its number is on disk. (It is that of
// STATE_DELETED, which has no list of its own: see listed.)
const listExpiring = jobpb.State(stateCount)

// listCount is one more than the last list.
const listCount = stateCount + 1

// expiredReason is the reason left with a job that died of it.
const expiredReason = "expired"

// everything is behind all places.
var everything = place{priority: math.MaxUint32, instant: math.MaxInt64, seq: math.MaxUint64}

// covers says whether a place of the ready list is listed as expiring too.
func (r *topicRecord) covers(p place) bool { return p.compare(r.covered) <= 0 }

// besides is where a ready job stands in the expiring list.
func (p place) besides() place { return place{instant: p.instant, seq: p.seq} }

// enlist puts a job into the lists of a state.
func (x *tx) enlist(t *topic, state jobpb.State, p place) {
	if state != jobpb.State_STATE_READY {
		x.put(t, state, p)
		return
	}
	if t.counts[state] == 0 {
		t.covered = place{}
		if t.settings.GetExpireMs() > 0 {
			t.covered = everything
		}
	}
	x.put(t, state, p)
	if t.covers(p) {
		x.put(t, listExpiring, p.besides())
	}
}

// delist takes a job from the lists of its state.
func (x *tx) delist(t *topic, state jobpb.State, p place) error {
	if err := x.take(t, state, p); err != nil {
		return err
	}
	if state == jobpb.State_STATE_READY && t.covers(p) {
		return x.take(t, listExpiring, p.besides())
	}
	return nil
}

// uncovered says that ready jobs are still to be listed.
func (t *topic) uncovered() bool {
	return t.settings.GetExpireMs() > 0 && t.counts[listExpiring] < t.counts[jobpb.State_STATE_READY]
}

// cover lists up to most ready jobs that are not listed yet, and says how many.
func (x *tx) cover(t *topic, most uint32) (uint32, error) {
	if most == 0 || !t.uncovered() {
		return 0, nil
	}
	found, err := x.places(t, jobpb.State_STATE_READY, progress{after: t.covered}, int(most))
	if err != nil {
		return 0, err
	}
	for _, p := range found {
		x.put(t, listExpiring, p.besides())
		t.covered = p
	}
	if !t.uncovered() {
		t.covered = everything
	}
	return uint32(len(found)), nil
}

// expired says whether a ready job's time is over.
func (x *tx) expired(t *topic, rec *record) bool {
	after := t.settings.GetExpireMs()
	return after > 0 && rec.fate.dueMS+after <= x.clock()
}

// expire does with a ready job what the topic's settings say of one that nobody
// took in time.
func (x *tx) expire(t *topic, rec *record) error {
	t.expired++
	if t.settings.GetExpiry() != jobpb.Expiry_EXPIRY_DEAD {
		return x.end(t, rec, jobpb.State_STATE_READY, jobpb.Event_EXPIRED, "")
	}
	return x.move(t, rec, jobpb.State_STATE_READY, jobpb.State_STATE_DEAD, func(f *fate) {
		f.reason = expiredReason
		x.kill(t, f)
		x.note(t, rec, jobpb.Event_EXPIRED, jobpb.State_STATE_DEAD, f.attempts, "")
	})
}

// expireNext does so with the first of the expiring list.
func (x *tx) expireNext(t *topic, p place) error {
	rec, err := x.job(p.seq, false)
	if err != nil {
		return err
	}
	if rec == nil {
		return missing(p.seq, t, listExpiring)
	}
	return x.expire(t, rec)
}

// nextExpiry is when the next job of the topic expires; 0: never.
func (t *topic) nextExpiry() int64 {
	after := t.settings.GetExpireMs()
	if after == 0 || t.counts[listExpiring] == 0 {
		return 0
	}
	return t.heads[listExpiring].instant + after
}

// begin gives a job that was dead a new time in the topic to which it comes back:
// from now on, or it would expire at once.
func (x *tx) begin(t *topic, f *fate) {
	if t.settings.GetExpireMs() > 0 {
		f.dueMS = x.clock()
	}
}

// maxExpire bounds the jobs that one Reserve finds expired: as many as it may
// hand out.
const maxExpire = job.MaxReserve
