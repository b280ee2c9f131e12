package fsm

import (
	"bytes"
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// add creates a job, or finds that it is there already.
func (x *tx) add(op *jobpb.Add, r *jobpb.Result) error {
	if err := x.checkAdd(op); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	if op.Id != "" {
		old, err := x.jobByID(op.Id)
		if err != nil {
			return err
		}
		if old != nil {
			return x.addTo(op, old, r)
		}
	}
	return x.addNew(op, r)
}

// addNew creates a job, and its topic if it has to.
func (x *tx) addNew(op *jobpb.Add, r *jobpb.Result) error {
	t := x.m.topics[op.Topic]
	if s := x.settingsOf(op.Topic, t); s != nil && s.MaxPending != nil && t.pending() >= *s.MaxPending {
		return x.refuseFull(op.Topic, s, t.pending(), r)
	}
	if t == nil {
		if x.topicsAtLimit() {
			return x.refuseTopic(op.Topic, r)
		}
		t = x.newTopic(op.Topic)
	}
	extras, err := encodeExtras(op.Extras)
	if err != nil {
		return err
	}
	rec, state := x.newRecord(op, t)
	rec.extras = extras
	t.added++
	x.create(t, rec, state)
	if x.replies {
		r.Seq, r.Id, r.State, r.DueMs, r.Revision = rec.seq, x.name(rec), state, rec.fate.dueMS, rec.revision
	}
	return nil
}

// addTo does what an add asks for when its id is taken.
func (x *tx) addTo(op *jobpb.Add, old *record, r *jobpb.Result) error {
	switch op.IfExists {
	case jobpb.IfExists_IF_EXISTS_REPLACE:
		return x.replace(op, old, r)
	case jobpb.IfExists_IF_EXISTS_POSTPONE:
		return x.postpone(op, old, r)
	default:
		return x.addAgain(op, old, r)
	}
}

func (x *tx) topicsAtLimit() bool { return len(x.m.topics) >= x.limits().MaxTopics }

func (x *tx) refuseTopic(name string, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_TOO_MANY_TOPICS, "topic %.40q is new and there are %d topics already, which is the limit; a topic without jobs goes away after an hour", name, len(x.m.topics))
}

// newRecord numbers the job and works out when it is due.
func (x *tx) newRecord(op *jobpb.Add, t *topic) (*record, jobpb.State) {
	now := x.clock()
	rec := &record{
		seq: x.m.meta.state.nextSeq,
		origin: origin{
			id: strings.Clone(op.Id), topic: t.number, priority: op.Priority, createdMS: now,
			dueRequest: op.DueMs, ttrMS: op.TtrMs, maxAttempts: op.MaxAttempts,
			bodyKind: op.BodyKind, bodyLen: len(op.Body),
		},
		body: op.Body,
	}
	x.m.meta.state.nextSeq++
	if t.settings != nil {
		rec.useDefaults(op, t.settings)
	}
	if op.DueMs == 0 {
		rec.delayMS = op.DelayMs
	}
	state, due := x.waitUntil(t, rec.seq, op.DueMs, op.DelayMs)
	rec.origin.dueMS = due
	rec.fate = freshFate(&rec.origin)
	return rec, state
}

// checkAdd refuses what the borders should not have let through.
func (x *tx) checkAdd(op *jobpb.Add) error {
	if op.Id != "" {
		if err := x.limits().CheckID("id", op.Id); err != nil {
			return err
		}
	}
	// A topic that exists has a good name.
	if x.m.topics[op.Topic] == nil {
		if err := x.limits().CheckTopic("topic", op.Topic); err != nil {
			return err
		}
	}
	switch {
	case op.DueMs < 0:
		return job.Errorf(job.CodeInvalid, "due_ms is %d; it must not be negative", op.DueMs)
	case op.DueMs > x.clock()+x.limits().MaxDelay.Milliseconds():
		return job.Errorf(job.CodeInvalid, "due_ms is %d ms ahead; the limit is %d", op.DueMs-x.clock(), x.limits().MaxDelay.Milliseconds())
	case op.DueMs == 0 && (op.DelayMs < 0 || op.DelayMs > x.limits().MaxDelay.Milliseconds()):
		return job.Errorf(job.CodeInvalid, "delay_ms is %d; it must be between 0 and %d", op.DelayMs, x.limits().MaxDelay.Milliseconds())
	case op.TtrMs < 1 || op.TtrMs > x.limits().MaxTTR.Milliseconds():
		return job.Errorf(job.CodeInvalid, "ttr_ms is %d; it must be between 1 and %d", op.TtrMs, x.limits().MaxTTR.Milliseconds())
	case len(op.Body) > x.limits().HardMaxBodyBytes:
		return job.Errorf(job.CodeInvalid, "body has %d bytes; the limit is %d", len(op.Body), x.limits().HardMaxBodyBytes)
	case op.BodyKind != jobpb.BodyKind_BODY_BYTES && op.BodyKind != jobpb.BodyKind_BODY_JSON:
		return job.Errorf(job.CodeInvalid, "body_kind is %d; this release knows only 0 and 1", op.BodyKind)
	case op.IfExists < 0 || op.IfExists > jobpb.IfExists_IF_EXISTS_POSTPONE:
		return job.Errorf(job.CodeInvalid, "if_exists is %d; this release knows only 0 to 3", op.IfExists)
	}
	if op.Extras == nil {
		return nil
	}
	return x.limits().CheckExtras(op.Extras)
}

// addAgain answers an add whose id is taken: by the same job, which makes adds
// safe to repeat, or by another.
func (x *tx) addAgain(op *jobpb.Add, old *record, r *jobpb.Result) error {
	if !x.replies {
		return nil // nothing changes
	}
	field, err := x.conflict(op, old)
	if err != nil {
		return err
	}
	t, err := x.topicOf(old)
	if err != nil {
		return err
	}
	if field != "" {
		return x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken by a job with another %s%s", op.Id, field, old.endedNote())
	}
	state, err := x.stateOf(t, old)
	if err != nil {
		return err
	}
	r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = old.seq, x.name(old), state, old.fate.dueMS, old.revision, true
	return nil
}

// conflict names the first field in which an add differs from the job that has
// its id, if it minds; empty: none.
func (x *tx) conflict(op *jobpb.Add, old *record) (string, error) {
	if op.IfExists == jobpb.IfExists_IF_EXISTS_KEEP {
		return "", nil
	}
	if _, err := x.job(old.seq, true); err != nil { // for the body
		return "", err
	}
	t, err := x.topicOf(old)
	if err != nil {
		return "", err
	}
	extras, err := encodeExtras(op.Extras)
	if err != nil {
		return "", err
	}
	return difference(op, extras, t.name, old), nil
}

// difference names the first field in which an add differs from a job as it was
// added; empty: none. What an add leaves to the topic is not compared: the
// settings may have changed since.
func difference(op *jobpb.Add, extras, topic string, old *record) string {
	delayMS := op.DelayMs
	if op.DueMs != 0 {
		delayMS = 0 // it is ignored
	}
	switch {
	case op.Topic != topic:
		return "topic"
	case op.BodyKind != old.bodyKind || !bytes.Equal(op.Body, old.body):
		return "body"
	case op.Priority != old.origin.priority:
		return "priority"
	case !op.TopicTtr && op.TtrMs != old.origin.ttrMS:
		return "ttr"
	case !op.TopicAttempts && op.MaxAttempts != old.origin.maxAttempts:
		return "max_attempts"
	case extras != old.extras:
		return "backoff or headers"
	case op.DueMs != old.dueRequest || delayMS != old.delayMS:
		return "delay or due instant"
	}
	return ""
}
