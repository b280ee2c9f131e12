package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// Expiry. A job that is added to a topic whose settings have a time of expiry is
// marked (origin.expires). While such a job is ready it also stands in the
// topic's expiring list, in the order of due instants: that is the order of
// expiry too, whatever the time is now, so changing the setting is one write. The
// head of the list tells Advance when a job expires next; Reserve passes none on
// that has expired. Topics without marked jobs have an empty list and pay nothing.

// listExpiring is the list of ready jobs that may expire, beside their place in
// the ready list. It is no state; its number is on disk. (It is that of
// STATE_DELETED, which has no list of its own: see listed.)
const listExpiring = jobpb.State(stateCount)

// listCount is one more than the last list.
const listCount = stateCount + 1

// expiredReason is the reason left with a job that died of it.
const expiredReason = "expired"

// enlist puts a job into the lists of a state.
func (x *tx) enlist(t *topic, rec *record, state jobpb.State) {
	x.put(t, state, rec.place(state, rec.seq))
	if rec.expires && state == jobpb.State_STATE_READY {
		x.put(t, listExpiring, rec.place(listExpiring, rec.seq))
	}
}

// delist takes a job from the lists of its state.
func (x *tx) delist(t *topic, rec *record, state jobpb.State) error {
	if err := x.take(t, state, rec.place(state, rec.seq)); err != nil {
		return err
	}
	if rec.expires && state == jobpb.State_STATE_READY {
		return x.take(t, listExpiring, rec.place(listExpiring, rec.seq))
	}
	return nil
}

// expired says whether a ready job's time is over.
func (x *tx) expired(t *topic, rec *record) bool {
	if !rec.expires {
		return false
	}
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

// begin gives a job that was dead a new time: from now on, or it would expire at
// once.
func (x *tx) begin(rec *record, f *fate) {
	if rec.expires {
		f.dueMS = x.clock()
	}
}

// maxExpire bounds the jobs that one Reserve finds expired: as many as it may
// hand out.
const maxExpire = job.MaxReserve
