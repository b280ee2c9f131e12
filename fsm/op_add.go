package fsm

import (
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
	return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS, "topic %.40q is new and there are %d topics already, which is the limit: each has jobs, a pause, or a rate that it has used up", name, len(x.m.topics))
}

// newRecord makes the record of a new job and returns the list that it belongs in.
func (x *tx) newRecord(op *jobpb.Add, t *topic) (*record.Job, record.List) {
	now := x.clock()
	rec := &record.Job{
		Seq: x.m.meta.State.NextSeq,
		Spec: record.Spec{
			ID: strings.Clone(op.Id), Topic: t.Number, Priority: op.Priority, CreatedMS: now,
			DueRequest: op.DueMs, TtrMS: op.TtrMs, MaxAttempts: op.MaxAttempts,
			BodyKind: op.BodyKind,
		},
		Body: op.Body, BodyLen: len(op.Body),
	}
	x.m.meta.State.NextSeq++
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
