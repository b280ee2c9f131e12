package fsm

import (
	"bytes"
	"cmp"
	"strings"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// add creates a job, unless its id is taken.
func (x *tx) add(op *jobpb.Add, r *jobpb.Result) error {
	if err := x.limits().CheckDue("due_at", op.DueMs, x.clock()); err != nil {
		return x.refuseInvalid(err, r)
	}
	if op.Id != "" {
		old, err := x.jobByID(op.Id)
		if err != nil {
			return err
		}
		if old != nil {
			return x.addTakenID(op, old, r)
		}
	}
	if err := x.checkExpiry(op); err != nil {
		return x.refuseInvalid(err, r)
	}
	return x.addNew(op, r)
}

// addNew creates a job, and its topic if needed.
func (x *tx) addNew(op *jobpb.Add, r *jobpb.Result) error {
	t := x.topicForNew(op, true, r)
	if t == nil {
		return nil
	}
	options, err := record.EncodeOptions(op.Options)
	if err != nil {
		return err
	}
	rec, list := x.newRecord(op, t)
	rec.Spec.Options, rec.Status.ExpiresMS = options, op.Options.GetExpiresMs()
	t.Added++
	x.create(t, rec, list)
	x.indexNew(t, rec.Seq, op.Options.GetHeaders())
	x.replyNew(rec, list, r)
	return nil
}

func (x *tx) replyNew(rec *record.Job, list record.List, r *jobpb.Result) {
	if x.replies {
		r.Seq, r.Id, r.State, r.DueMs, r.Revision = rec.Seq, x.name(rec), rec.State(list), rec.Status.DueMS, rec.Status.Revision
	}
}

// topicForNew returns the topic of a new job, which it makes if needed. nil means that the
// add was refused. If waits, the job counts to the limit of the topic's waiting jobs.
func (x *tx) topicForNew(op *jobpb.Add, waits bool, r *jobpb.Result) *topic {
	t := x.m.topics[op.Topic]
	s := x.settingsOf(op.Topic, t)
	if err := record.CheckPushURL(op.Topic, s, op.Options.GetPushUrl()); err != nil {
		_ = x.refuseInvalid(err, r)
		return nil
	}
	if waits && isFull(s, t.pending()) {
		_ = x.refuseFull(op.Topic, s, t.pending(), r)
		return nil
	}
	if n := x.namespaceFor(op.Topic, t); n != nil && !x.quotaChecked {
		if err := n.checkID(op.Id); err != nil {
			_ = x.refuseInvalid(err, r)
			return nil
		}
		if !x.fits(n, growth{1, int64(len(op.Body)), newTopics(t)}, r) {
			return nil
		}
	}
	if t == nil {
		if x.topicsAtLimit() {
			_ = x.refuseTopic(op.Topic, r)
			return nil
		}
		t = x.newTopic(op.Topic)
	}
	return t
}

// addTakenID does what if_exists asks for.
func (x *tx) addTakenID(op *jobpb.Add, old *record.Job, r *jobpb.Result) error {
	switch op.IfExists {
	case jobpb.IfExists_IF_EXISTS_REPLACE:
		return x.replace(op, old, r)
	case jobpb.IfExists_IF_EXISTS_POSTPONE:
		return x.postpone(op, old, r)
	case jobpb.IfExists_IF_EXISTS_REPLACE_ENDED:
		return x.replaceEnded(op, old, r)
	default:
		return x.addExisting(op, old, r)
	}
}

// topicsAtLimit reports whether no topic can be made. At the limit it drops idle ones.
func (x *tx) topicsAtLimit() bool {
	if len(x.m.topics) >= x.limits().MaxTopics && x.m.meta.Version >= 2 {
		x.dropIdleTopics(1, func(*topic) bool { return false })
	}
	return len(x.m.topics) >= x.limits().MaxTopics
}

func (x *tx) refuseTopic(name string, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS,
		"topic %.40q is new and there are %d topics already, which is the limit: each has jobs, a pause, or a rate that it has used up",
		name, len(x.m.topics))
}

// newRecord makes the record of a new job and returns the list that it belongs in.
func (x *tx) newRecord(op *jobpb.Add, t *topic) (*record.Job, record.List) {
	now := x.clock()
	rec := &record.Job{
		Seq: x.takeNumber(),
		Spec: record.Spec{
			ID: strings.Clone(op.Id), Topic: t.Number, Priority: op.Priority, CreatedMS: now,
			DueRequest: op.DueMs, TtrMS: op.TtrMs, MaxAttempts: op.MaxAttempts,
			BodyKind: op.BodyKind,
		},
		Body: op.Body, BodyLen: len(op.Body),
	}
	if t.settings != nil {
		useDefaults(&rec.Spec, op, t.settings)
	}
	if op.DueMs == 0 {
		rec.Spec.DelayMS = op.DelayMs
	}
	list, due := x.waitUntil(t, rec.Seq, op.DueMs, op.DelayMs, op.Options.GetExpiresMs())
	rec.Spec.DueMS = due
	rec.Status = record.NewStatus(&rec.Spec)
	return rec, list
}

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

// importJob creates a job as it was elsewhere, unless its id is taken.
//
// It differs from an add where a job that is not new may break a rule of adds: a topic may have
// more waiting jobs than its settings let producers add, because reserved ones come back; and a
// job may have expired, which an Advance finds. The due instant has the topic's spread already.
func (x *tx) importJob(op *jobpb.ImportJob, r *jobpb.Result) error {
	add := op.Add
	if err := x.limits().CheckDue("due_at", add.DueMs, x.clock()); err != nil {
		return x.refuseInvalid(err, r)
	}
	if add.Id != "" {
		old, err := x.jobByID(add.Id)
		if err != nil {
			return err
		}
		if old != nil {
			return x.importExisting(add, old, r)
		}
	}
	t := x.topicForNew(add, false, r)
	if t == nil {
		return nil
	}
	options, err := record.EncodeOptions(add.Options)
	if err != nil {
		return err
	}
	rec, list := x.importedRecord(op, t)
	rec.Spec.Options, rec.Status.ExpiresMS = options, add.Options.GetExpiresMs()
	t.Added++
	x.create(t, rec, list)
	// Most jobs wait for their first attempt: they need no status record.
	if first := record.NewStatus(&rec.Spec); rec.Status != first {
		x.save(rec)
	}
	x.indexNew(t, rec.Seq, add.Options.GetHeaders())
	x.replyNew(rec, list, r)
	return nil
}

// importedRecord makes the record of an imported job and returns the list that it belongs in.
func (x *tx) importedRecord(op *jobpb.ImportJob, t *topic) (*record.Job, record.List) {
	now := x.clock()
	rec, _ := x.newRecord(op.Add, t)
	rec.Spec.CreatedMS = min(op.CreatedMs, now)
	rec.Spec.DueMS = op.Add.DueMs
	list := record.ListDelayed
	switch {
	case op.Dead:
		list, rec.Spec.DueMS = record.ListDead, min(op.Add.DueMs, now) // only delayed jobs are due after the clock
	case op.Add.DueMs <= now:
		list = record.ListReady
	}
	s := record.NewStatus(&rec.Spec)
	s.LastDelayMS = op.DelayMs
	s.Attempts, s.Reserves, s.Timeouts = op.Attempts, op.Reserves, op.Timeouts
	s.Releases, s.Buries, s.Kicks = op.Releases, op.Buries, op.Kicks
	s.Reason, s.LastError = strings.Clone(op.Reason), strings.Clone(op.LastError) // they outlive the entry
	if op.Dead {
		s.SetDead(t.Rank, min(op.DiedMs, now))
		t.Rank++ // but not t.died: it did not die here
	}
	rec.Status = s
	return rec, list
}

// importExisting replies to an import of a job whose id is taken. It succeeds if that is the
// same job, whatever has happened to it since: one of the same topic, with the same body.
func (x *tx) importExisting(add *jobpb.Add, old *record.Job, r *jobpb.Result) error {
	if !x.replies {
		return nil
	}
	t, err := x.topicOf(old)
	if err != nil || !x.mayFindID(add, t, r) {
		return err
	}
	if _, err := x.job(old.Seq, true); err != nil { // for the body
		return err
	}
	field := ""
	switch {
	case t.name != add.Topic:
		field = "topic"
	case add.BodyKind != old.Spec.BodyKind || !bytes.Equal(add.Body, old.Body):
		field = "body"
	}
	if field != "" {
		return x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken by a job with another %s%s", add.Id, field, old.EndedNote())
	}
	list, err := x.listOf(t, old)
	if err != nil {
		return err
	}
	x.replyNew(old, list, r)
	r.Existing = true
	return nil
}
