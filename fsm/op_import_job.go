package fsm

import (
	"bytes"
	"strings"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

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
