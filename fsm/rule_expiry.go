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

// A job can also have an expiry of its own (expires_at). Then it is in listDeadline while
// it is delayed or ready, in the order of these instants. It expires at the earlier of the
// two. Falling due changes nothing there, so that it need not read the job.

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

// list adds a job to a list and, while it waits with an expiry of its own, to listDeadline. A
// dead one also joins its group.
func (x *tx) list(t *topic, rec *record, list listKind) {
	x.addToLists(t, list, rec.place(list))
	if rec.hasDeadline(list) {
		x.insertPlace(t, listDeadline, rec.place(listDeadline))
	}
	if list == listDead {
		x.joinGroup(t, rec)
	}
}

// unlist undoes list.
func (x *tx) unlist(t *topic, rec *record, list listKind) error {
	if list == listDead {
		x.leaveGroup(t, rec)
	}
	if err := x.removeFromLists(t, list, rec.place(list)); err != nil || !rec.hasDeadline(list) {
		return err
	}
	return x.removePlace(t, listDeadline, rec.place(listDeadline))
}

// hasDeadline reports whether a job of the list is in listDeadline too.
func (rec *record) hasDeadline(list listKind) bool {
	return rec.status.expiresMS != 0 && list.waits()
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

// expired reports whether a waiting job has expired.
func (x *tx) expired(t *topic, rec *record) bool {
	at := rec.expiresAt(t.settings)
	return at != 0 && at <= x.clock()
}

// expiresAt returns when a waiting job of a topic with the settings expires; 0: never.
func (rec *record) expiresAt(s *jobpb.TopicSettings) int64 {
	own, after := rec.status.expiresMS, s.GetExpireMs()
	switch {
	case after == 0:
		return own
	case own == 0:
		return rec.status.dueMS + after
	}
	return min(own, rec.status.dueMS+after)
}

// expire deletes an expired job of the list from or sets it dead, by the topic's settings.
//
// A release or a backoff may have delayed the job beyond its expiry. When it dies it is no
// longer delayed: a kick makes it ready, and only delayed jobs are due after the clock (listOf).
func (x *tx) expire(t *topic, rec *record, from listKind) error {
	t.expired++
	if t.settings.GetExpiry() != jobpb.Expiry_EXPIRY_DEAD {
		return x.endJob(t, rec, from, jobpb.Event_EXPIRED, "")
	}
	return x.move(t, rec, from, listDead, func(s *jobStatus) {
		s.reason = expiredReason
		s.dueMS = min(s.dueMS, x.clock())
		x.setDead(t, s)
		x.recordEvent(t, rec, jobpb.Event_EXPIRED, listDead, s.attempts, "")
	})
}

// expireNext expires the first job of listExpiring or listDeadline.
func (x *tx) expireNext(t *topic, of listKind, p place) error {
	rec, err := x.jobIn(t, of, p.seq, false)
	if err != nil {
		return err
	}
	from, err := x.listOf(t, rec)
	if err != nil {
		return err
	}
	return x.expire(t, rec, from)
}

// nextExpiry returns when the next job of the topic expires; 0: never.
func (t *topic) nextExpiry() (at int64) {
	if after := t.settings.GetExpireMs(); after != 0 && t.counts[listExpiring] > 0 {
		at = t.heads[listExpiring].instant + after
	}
	if t.counts[listDeadline] > 0 && (at == 0 || t.heads[listDeadline].instant < at) {
		at = t.heads[listDeadline].instant
	}
	return at
}

// checkExpiry returns an error for an add of a job that would expire before it is due.
func (x *tx) checkExpiry(op *jobpb.Add) error {
	return x.expiresLater(op.DueMs, op.DelayMs, op.Options.GetExpiresMs())
}

// expiresLater returns an error unless a job expires, if at all, after it is due: at dueMS
// or, if that is 0, after delayMS.
func (x *tx) expiresLater(dueMS, delayMS, expiresMS int64) error {
	if dueMS == 0 {
		dueMS = x.after(delayMS)
	}
	if dueMS = max(dueMS, x.clock()); expiresMS == 0 || expiresMS > dueMS {
		return nil
	}
	return job.Invalid("expires_at", "is %s, but the job is due at %s; it must be later", job.Instant(expiresMS), job.Instant(dueMS))
}

// restartExpiry restarts the time of expiry of a dead job that comes back to t, and takes
// one of its own away that has passed. Without that it would expire at once.
func (x *tx) restartExpiry(t *topic, s *jobStatus) {
	if s.expiresMS <= x.clock() {
		s.expiresMS = 0
	}
	if t.settings.GetExpireMs() > 0 {
		s.dueMS = x.clock()
	}
}

// maxExpire bounds the expired jobs that one Reserve passes.
const maxExpire = job.MaxReserve
