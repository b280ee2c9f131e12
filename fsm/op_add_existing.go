package fsm

import (
	"bytes"
	"cmp"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// addExisting replies to an add whose id is taken. It succeeds if the job is the same, so
// that adds are safe to repeat.
func (x *tx) addExisting(op *jobpb.Add, old *record.Job, r *jobpb.Result) error {
	if !x.replies {
		return nil
	}
	t, err := x.topicOf(old)
	if err != nil || !x.mayFindID(op, t, r) {
		return err
	}
	field, err := x.conflict(op, old)
	if err != nil {
		return err
	}
	if field != "" {
		return x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken by a job with another %s%s", op.Id, field, old.EndedNote())
	}
	list, err := x.listOf(t, old)
	if err != nil {
		return err
	}
	r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = old.Seq, x.name(old), old.State(list), old.Status.DueMS, old.Status.Revision, true
	return nil
}

// conflict returns the first field in which an add differs from the job that has its id;
// empty: none, or the add accepts any job.
func (x *tx) conflict(op *jobpb.Add, old *record.Job) (string, error) {
	if op.IfExists == jobpb.IfExists_IF_EXISTS_KEEP {
		return "", nil
	}
	if _, err := x.job(old.Seq, true); err != nil { // for the body
		return "", err
	}
	t, err := x.topicOf(old)
	if err != nil {
		return "", err
	}
	same, err := record.SameOptions(op.Options, &old.Spec)
	if err != nil {
		return "", err
	}
	return difference(op, same, t.name, old), nil
}

// difference returns the first field in which an add differs from a job as it was added;
// empty: none. Whether the options are the same is given. It does not compare what an add
// leaves to the topic, whose settings may have changed since.
func difference(op *jobpb.Add, sameOptions bool, topic string, old *record.Job) string {
	delayMS := op.DelayMs
	if op.DueMs != 0 {
		delayMS = 0
	}
	switch {
	case op.Topic != topic:
		return "topic"
	case op.BodyKind != old.Spec.BodyKind || !bytes.Equal(op.Body, old.Body):
		return "body"
	case op.Priority != old.Spec.Priority:
		return "priority"
	case !op.TopicTtr && op.TtrMs != old.Spec.TtrMS:
		return "ttr"
	case !op.TopicAttempts && op.MaxAttempts != old.Spec.MaxAttempts:
		return "max_attempts"
	case !sameOptions:
		return "backoff, headers, expiry or push_url"
	case op.DueMs != old.Spec.DueRequest || delayMS != old.Spec.DelayMS:
		return "delay or due instant"
	}
	return ""
}

// replace deletes the job that has an add's id and adds the new one, with a new seq and no
// history.
func (x *tx) replace(op *jobpb.Add, old *record.Job, r *jobpb.Result) error {
	t, from, err := x.replaceable(op, old, r)
	if t == nil || err != nil {
		return err
	}
	// All checks come before the first change.
	if err := x.checkExpiry(op); err != nil {
		return x.refuseInvalid(err, r)
	}
	to := x.m.topics[op.Topic]
	s := x.settingsOf(op.Topic, to)
	if err := record.CheckPushURL(op.Topic, s, op.Options.GetPushUrl()); err != nil {
		return x.refuseInvalid(err, r)
	}
	if to == nil && x.topicsAtLimit() {
		return x.refuseTopic(op.Topic, r)
	}
	pending := to.pending()
	if to == t && from.Waits() {
		pending-- // the old job
	}
	if isFull(s, pending) {
		return x.refuseFull(op.Topic, s, pending, r)
	}
	if n := x.namespaceFor(op.Topic, to); n != nil {
		if err := n.checkID(op.Id); err != nil {
			return x.refuseInvalid(err, r)
		}
		more := growth{1, int64(len(op.Body)), newTopics(to)}
		if n == t.namespace {
			more.jobs, more.bytes = 0, more.bytes-int64(old.BodyLen)
		}
		if !x.fits(n, more, r) {
			return nil
		}
	}
	if !old.Status.Phase.Ended() {
		t.Deleted++
	}
	// Its id goes to the new job, so it cannot be retained.
	if err := x.erase(t, old, from); err != nil {
		return err
	}
	r.Replaced = true
	x.quotaChecked = true
	err = x.addNew(op, r)
	x.quotaChecked = false
	return err
}

// replaceEnded replaces the job that has an add's id if it has ended: nobody would get the job of
// the add otherwise.
func (x *tx) replaceEnded(op *jobpb.Add, old *record.Job, r *jobpb.Result) error {
	t, err := x.topicOf(old)
	if err != nil {
		return err
	}
	list, err := x.listOf(t, old)
	switch {
	case err != nil:
		return err
	case list == record.ListDead || old.Status.Phase.Ended():
		return x.replace(op, old, r)
	default:
		return x.addExisting(op, old, r)
	}
}

// postpone gives the job that has an add's id the due instant of the add. A retained job is
// replaced instead.
func (x *tx) postpone(op *jobpb.Add, old *record.Job, r *jobpb.Result) error {
	t, from, err := x.replaceable(op, old, r)
	switch {
	case t == nil || err != nil:
		return err
	case old.Status.Phase.Ended():
		return x.replace(op, old, r)
	case t.name != op.Topic:
		return x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken by a job with another topic", op.Id)
	case from == record.ListDead:
		return x.refuseDead(old, r)
	}
	expires := cmp.Or(op.Options.GetExpiresMs(), old.Status.ExpiresMS)
	if err := x.expiresLater(op.DueMs, op.DelayMs, expires); err != nil {
		return x.refuseInvalid(err, r)
	}
	to, due := x.waitUntil(t, old.Seq, op.DueMs, op.DelayMs, expires)
	err = x.move(t, old, from, to, func(s *record.Status) {
		s.TimedOut, s.ExpiresMS = false, expires
		s.DueMS, s.LastDelayMS = due, due-x.clock()
		x.recordEvent(t, old, jobpb.Event_POSTPONED, to, s.Attempts, "")
	})
	r.Seq, r.Id, r.State, r.DueMs, r.Revision = old.Seq, x.name(old), old.State(to), due, old.Status.Revision
	r.Existing, r.Postponed = true, true
	return err
}

// replaceable returns the topic and list of a job that an add may replace or postpone. A
// nil topic means that the add was refused.
func (x *tx) replaceable(op *jobpb.Add, old *record.Job, r *jobpb.Result) (*topic, record.List, error) {
	t, err := x.topicOf(old)
	if err != nil {
		return nil, record.ListNone, err
	}
	if !x.mayReplace(op, t, r) {
		return nil, record.ListNone, nil
	}
	list, err := x.listOf(t, old)
	if err != nil {
		return nil, record.ListNone, err
	}
	if ok, err := x.meets(op.Condition, t, old, list, r); !ok || err != nil {
		return nil, record.ListNone, err
	}
	if list == record.ListReserved {
		return nil, record.ListNone, x.refuseReserved(old, r)
	}
	return t, list, nil
}
