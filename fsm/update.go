package fsm

import (
	"fmt"
	"slices"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// update changes a waiting or dead job, which keeps its seq, attempts and history.
func (x *tx) update(op *jobpb.Update, r *jobpb.Result) error {
	if err := x.limits().CheckDue("due_at", op.GetDueMs(), x.clock()); err != nil {
		return x.refuseInvalid(err, r)
	}
	rec, t, from, err := x.findListed(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if ok, err := x.meets(op.Condition, t, rec, from, r); !ok || err != nil {
		return err
	}
	moves := op.DelayMs != nil || op.DueMs != nil
	switch {
	case from == record.ListReserved:
		return x.refuseReserved(rec, r)
	case from == record.ListDead && moves:
		return x.refuseDead(rec, r)
	case from != record.ListDead && op.GetMaxAttempts() != 0 && *op.MaxAttempts <= rec.Status.Attempts:
		// A dead job may have fewer: a kick resets its attempts.
		return x.refuse(r, jobpb.Code_INVALID,
			"max_attempts is %d; job %.40q has had %d attempts and needs one more", *op.MaxAttempts, x.name(rec), rec.Status.Attempts)
	}
	to, due, expires := from, rec.Status.DueMS, rec.Status.ExpiresMS
	if op.ExpiresMs != nil {
		expires = *op.ExpiresMs
	}
	if from != record.ListDead && (moves || op.ExpiresMs != nil) {
		dueMS := op.GetDueMs()
		if !moves {
			dueMS = due
		}
		if err := x.expiresLater(dueMS, op.GetDelayMs(), expires); err != nil {
			return x.refuseInvalid(err, r)
		}
	}
	if !x.mayHave(op, t, rec, r) {
		return nil
	}
	body, kind, rewrites, err := x.newContent(op, t, rec)
	if err != nil {
		return err
	}
	if moves {
		to, due = x.waitUntil(t, rec.Seq, op.GetDueMs(), op.GetDelayMs(), expires)
	}
	err = x.move(t, rec, from, to, func(s *record.Status) {
		s.TimedOut = false
		if moves {
			s.DueMS, s.LastDelayMS = due, due-x.clock()
		}
		if op.Priority != nil {
			s.Priority = *op.Priority
		}
		if op.TtrMs != nil {
			s.TtrMS = *op.TtrMs
		}
		if op.MaxAttempts != nil {
			s.MaxAttempts = *op.MaxAttempts
		}
		s.ExpiresMS = expires
		if rewrites {
			x.rewrite(rec, kind, body)
		}
		s.Update(op)
		x.recordEvent(t, rec, jobpb.Event_UPDATED, to, s.Attempts, "")
	})
	r.State, r.DueMs, r.Revision = rec.State(to), due, rec.Status.Revision
	return err
}

// mayHave reports whether a job of t may have the push_url and the body of an update; if not, it
// refuses the operation.
func (x *tx) mayHave(op *jobpb.Update, t *topic, rec *record.Job, r *jobpb.Result) bool {
	if op.PushUrl != nil {
		if err := record.CheckPushURL(t.name, t.settings, *op.PushUrl); err != nil {
			_ = x.refuseInvalid(err, r)
			return false
		}
	}
	return op.Body == nil || x.fits(t.namespace, growth{bytes: int64(len(op.Body) - rec.BodyLen)}, r)
}

// newContent applies the options of an update to the spec. If the spec must be written
// again, it also returns the body for it.
func (x *tx) newContent(op *jobpb.Update, t *topic, rec *record.Job) (body []byte, kind jobpb.BodyKind, rewrites bool, err error) {
	if op.Backoff != nil || op.Headers != nil || op.PushUrl != nil {
		if err := x.newOptions(op, t, rec); err != nil {
			return nil, 0, false, err
		}
		rewrites = true
	}
	switch {
	case op.Body != nil:
		return op.Body, op.BodyKind, true, nil
	case !rewrites:
		return nil, 0, false, nil
	}
	if _, err := x.job(rec.Seq, true); err != nil { // for the body
		return nil, 0, false, err
	}
	return rec.Body, rec.Spec.BodyKind, true, nil
}

// newOptions applies the backoff, the headers and the push_url of an update to the spec.
func (x *tx) newOptions(op *jobpb.Update, t *topic, rec *record.Job) error {
	e, err := rec.Spec.DecodeOptions()
	if err != nil {
		return err
	}
	if e == nil {
		e = &jobpb.JobOptions{}
	}
	if op.Backoff != nil {
		e.Backoff = op.Backoff
		if noBackoff(op.Backoff) {
			e.Backoff = nil
		}
	}
	if op.Headers != nil {
		if err := x.reindex(rec, t.settings, nil); err != nil {
			return err
		}
		e.Headers = op.Headers.List
		x.indexNew(t, rec.Seq, e.Headers)
	}
	if op.PushUrl != nil {
		if e.PushUrl != "" {
			t.PushURLs--
		}
		if e.PushUrl = *op.PushUrl; e.PushUrl != "" {
			t.PushURLs++
		}
	}
	rec.Spec.Options, err = record.EncodeOptions(e)
	return err
}

func noBackoff(b *jobpb.Backoff) bool { return b.SizeVT() == 0 }

// meets reports whether a job in the list meets the condition; if not, it refuses the
// operation.
func (x *tx) meets(c *jobpb.Condition, t *topic, rec *record.Job, list record.List, r *jobpb.Result) (bool, error) {
	if c == nil {
		return true, nil
	}
	state := rec.State(list)
	fits := (c.Revision == 0 || c.Revision == rec.Status.Revision) &&
		(len(c.States) == 0 || slices.Contains(c.States, state)) &&
		(c.Topic == "" || c.Topic == t.name)
	if fits {
		var err error
		if fits, err = record.Matches(c.Filter, rec); err != nil {
			return false, err
		}
	}
	if !fits && x.replies {
		r.Code = jobpb.Code_CONDITION_FAILED
		r.Message = fmt.Sprintf(
			"job %.40q is %s with revision %d, which does not meet the condition", x.name(rec), job.StateName(state), rec.Status.Revision)
	}
	return fits, nil
}

func (x *tx) refuseReserved(rec *record.Job, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_ALREADY_RESERVED, "job %.40q is reserved; it cannot be changed before its reservation ends", x.name(rec))
}

func (x *tx) refuseDead(rec *record.Job, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_ALREADY_DEAD, "job %.40q is dead and has no due instant; kick it, or replace it", x.name(rec))
}
