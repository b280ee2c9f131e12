package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// Expiry. While a topic's settings have a time of expiry, its ready jobs are also
// in ListExpiring, in the order of due instants. That is the order of expiry for any
// value of the setting, so changing it is one write. Advance reads from the head of
// the list when a job expires next. Reserve checks the job itself, so it never hands
// out an expired job, listed or not.
//
// Jobs that were ready before the topic had the setting are listed later, a
// bounded number with each Advance, in the order of the ready list.
//
// Invariant: a ready job is listed if and only if its place in the ready list
// is not after the topic's ExpiryIndexed place. The first job of an empty ready list
// sets that place: after everything with the setting, before everything without. So a
// topic that never had the setting has no cost, and one that had it has no cost once
// its ready list is empty.

// A job can also have an expiry of its own (expires_at). Then it is in ListDeadline while
// it is delayed or ready, in the order of these instants. It expires at the earlier of the
// two. Falling due changes nothing there, so that it need not read the job.

// expiredReason is the reason of a job that died because it expired.
const expiredReason = "expired"

// addToLists adds a job to a list, and an indexed ready one also to ListExpiring.
func (x *tx) addToLists(t *topic, list record.List, p record.Place) {
	if list != record.ListReady {
		x.insertPlace(t, list, p)
		return
	}
	if t.Counts[list] == 0 {
		t.ExpiryIndexed = record.Place{}
		if t.settings.GetExpireMs() > 0 {
			t.ExpiryIndexed = record.Everything
		}
	}
	x.insertPlace(t, list, p)
	if t.IsExpiryIndexed(p) {
		x.insertPlace(t, record.ListExpiring, p.ExpiringPlace())
	}
}

// removeFromLists undoes addToLists.
func (x *tx) removeFromLists(t *topic, list record.List, p record.Place) error {
	if err := x.removePlace(t, list, p); err != nil {
		return err
	}
	if list == record.ListReady && t.IsExpiryIndexed(p) {
		return x.removePlace(t, record.ListExpiring, p.ExpiringPlace())
	}
	return nil
}

// list adds a job to a list and, while it waits with an expiry of its own, to ListDeadline. A
// dead one also joins its group.
func (x *tx) list(t *topic, rec *record.Job, list record.List) {
	x.addToLists(t, list, rec.Place(list))
	if rec.HasDeadline(list) {
		x.insertPlace(t, record.ListDeadline, rec.Place(record.ListDeadline))
	}
	if list == record.ListDead {
		x.joinGroup(t, rec)
	}
}

// unlist undoes list.
func (x *tx) unlist(t *topic, rec *record.Job, list record.List) error {
	if list == record.ListDead {
		x.leaveGroup(t, rec)
	}
	if err := x.removeFromLists(t, list, rec.Place(list)); err != nil || !rec.HasDeadline(list) {
		return err
	}
	return x.removePlace(t, record.ListDeadline, rec.Place(record.ListDeadline))
}

// needsExpiryIndex reports whether ready jobs are missing from the expiring list.
func (t *topic) needsExpiryIndex() bool {
	return t.settings.GetExpireMs() > 0 && t.Counts[record.ListExpiring] < t.Counts[record.ListReady]
}

// indexExpiry adds up to most ready jobs to the expiring list and returns their number.
func (x *tx) indexExpiry(t *topic, most uint32) (uint32, error) {
	if most == 0 || !t.needsExpiryIndex() {
		return 0, nil
	}
	found, err := x.places(t, record.ListReady, progress{after: t.ExpiryIndexed}, int(most))
	if err != nil {
		return 0, err
	}
	for _, p := range found {
		x.insertPlace(t, record.ListExpiring, p.ExpiringPlace())
		t.ExpiryIndexed = p
	}
	if !t.needsExpiryIndex() {
		t.ExpiryIndexed = record.Everything
	}
	return uint32(len(found)), nil
}

// expired reports whether a waiting job has expired.
func (x *tx) expired(t *topic, rec *record.Job) bool {
	at := rec.ExpiresAt(t.settings)
	return at != 0 && at <= x.clock()
}

// expire deletes an expired job of the list from or sets it dead, by the topic's settings.
//
// A release or a backoff may have delayed the job beyond its expiry. When it dies it is no
// longer delayed: a kick makes it ready, and only delayed jobs are due after the clock (listOf).
func (x *tx) expire(t *topic, rec *record.Job, from record.List) error {
	t.Expired++
	if t.settings.GetExpiry() != jobpb.Expiry_EXPIRY_DEAD {
		return x.endJob(t, rec, from, jobpb.Event_EXPIRED, "")
	}
	return x.move(t, rec, from, record.ListDead, func(s *record.Status) {
		s.Reason = expiredReason
		s.DueMS = min(s.DueMS, x.clock())
		x.setDead(t, s)
		x.recordEvent(t, rec, jobpb.Event_EXPIRED, record.ListDead, s.Attempts, "")
	})
}

// expireNext expires the first job of ListExpiring or ListDeadline.
func (x *tx) expireNext(t *topic, of record.List, p record.Place) error {
	rec, err := x.jobIn(t, of, p.Seq, false)
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
	if after := t.settings.GetExpireMs(); after != 0 && t.Counts[record.ListExpiring] > 0 {
		at = t.Heads[record.ListExpiring].Instant + after
	}
	if t.Counts[record.ListDeadline] > 0 && (at == 0 || t.Heads[record.ListDeadline].Instant < at) {
		at = t.Heads[record.ListDeadline].Instant
	}
	return at
}

// checkExpiry returns an error for an add of a job that would expire before it is due.
func (x *tx) checkExpiry(op *jobpb.Add) error {
	return x.expiresLater(op.DueMs, op.DelayMs, op.Options.GetExpiresMs())
}

// expiresLater returns an error unless a job expires, if at all, after it is due: at DueMS
// or, if that is 0, after DelayMS.
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
func (x *tx) restartExpiry(t *topic, s *record.Status) {
	if s.ExpiresMS <= x.clock() {
		s.ExpiresMS = 0
	}
	if t.settings.GetExpireMs() > 0 {
		s.DueMS = x.clock()
	}
}

// maxExpire bounds the expired jobs that one Reserve passes.
const maxExpire = job.MaxReserve
