package fsm

import (
	"math"

	"tarry/job"
	"tarry/job/jobpb"
)

// Expiry. While a topic's settings have a time of expiry, its ready jobs are also
// in listExpiring, in the order of due instants. That is the order of expiry for any
// value of the setting, so changing it is one write. Advance reads from the head of
// the list when a job expires next. Reserve checks the job itself, so it never hands
// out an expired job, listed or not.
//
// Jobs that were ready before the topic had the setting are listed later, a
// bounded number with each Advance, in the order of the ready list.
//
// Invariant: a ready job is listed if and only if its place in the ready list
// is not after the topic's expiryIndexed place. The first job of an empty ready list
// sets that place: after everything with the setting, before everything without. So a
// topic that never had the setting has no cost, and one that had it has no cost once
// its ready list is empty.

// expiredReason is the reason of a job that died because it expired.
const expiredReason = "expired"

// everything is a place behind all others.
var everything = place{priority: math.MaxUint32, instant: math.MaxInt64, seq: math.MaxUint64}

// isExpiryIndexed reports whether a place of the ready list is in the expiring list too.
func (r *topicRecord) isExpiryIndexed(p place) bool { return p.compare(r.expiryIndexed) <= 0 }

// expiringPlace returns the place in the expiring list of a job whose ready place is p.
func (p place) expiringPlace() place { return place{instant: p.instant, seq: p.seq} }

// addToLists adds a job to a list, and an indexed ready one also to listExpiring.
func (x *tx) addToLists(t *topic, list listKind, p place) {
	if list != listReady {
		x.insertPlace(t, list, p)
		return
	}
	if t.counts[list] == 0 {
		t.expiryIndexed = place{}
		if t.settings.GetExpireMs() > 0 {
			t.expiryIndexed = everything
		}
	}
	x.insertPlace(t, list, p)
	if t.isExpiryIndexed(p) {
		x.insertPlace(t, listExpiring, p.expiringPlace())
	}
}

// removeFromLists undoes addToLists.
func (x *tx) removeFromLists(t *topic, list listKind, p place) error {
	if err := x.removePlace(t, list, p); err != nil {
		return err
	}
	if list == listReady && t.isExpiryIndexed(p) {
		return x.removePlace(t, listExpiring, p.expiringPlace())
	}
	return nil
}

// needsExpiryIndex reports whether ready jobs are missing from the expiring list.
func (t *topic) needsExpiryIndex() bool {
	return t.settings.GetExpireMs() > 0 && t.counts[listExpiring] < t.counts[listReady]
}

// indexExpiry adds up to most ready jobs to the expiring list and returns their number.
func (x *tx) indexExpiry(t *topic, most uint32) (uint32, error) {
	if most == 0 || !t.needsExpiryIndex() {
		return 0, nil
	}
	found, err := x.places(t, listReady, progress{after: t.expiryIndexed}, int(most))
	if err != nil {
		return 0, err
	}
	for _, p := range found {
		x.insertPlace(t, listExpiring, p.expiringPlace())
		t.expiryIndexed = p
	}
	if !t.needsExpiryIndex() {
		t.expiryIndexed = everything
	}
	return uint32(len(found)), nil
}

// expired reports whether a ready job has expired.
func (x *tx) expired(t *topic, rec *record) bool {
	after := t.settings.GetExpireMs()
	return after > 0 && rec.status.dueMS+after <= x.clock()
}

// expire deletes an expired ready job or sets it dead, by the topic's settings.
func (x *tx) expire(t *topic, rec *record) error {
	t.expired++
	if t.settings.GetExpiry() != jobpb.Expiry_EXPIRY_DEAD {
		return x.endJob(t, rec, listReady, jobpb.Event_EXPIRED, "")
	}
	return x.move(t, rec, listReady, listDead, func(s *jobStatus) {
		s.reason = expiredReason
		x.setDead(t, s)
		x.recordEvent(t, rec, jobpb.Event_EXPIRED, listDead, s.attempts, "")
	})
}

// expireNext expires the first job of the expiring list.
func (x *tx) expireNext(t *topic, p place) error {
	rec, err := x.jobIn(t, listExpiring, p.seq, false)
	if err != nil {
		return err
	}
	return x.expire(t, rec)
}

// nextExpiry returns when the next job of the topic expires; 0: never.
func (t *topic) nextExpiry() int64 {
	after := t.settings.GetExpireMs()
	if after == 0 || t.counts[listExpiring] == 0 {
		return 0
	}
	return t.heads[listExpiring].instant + after
}

// restartExpiry restarts the time of expiry of a dead job that comes back to t. Without
// that it would expire at once.
func (x *tx) restartExpiry(t *topic, s *jobStatus) {
	if t.settings.GetExpireMs() > 0 {
		s.dueMS = x.clock()
	}
}

// maxExpire bounds the expired jobs that one Reserve passes.
const maxExpire = job.MaxReserve
