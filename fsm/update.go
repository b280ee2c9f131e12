package fsm

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// update changes a job that waits or is dead, in place: it keeps its seq, its
// attempts and its history.
func (x *tx) update(op *jobpb.Update, r *jobpb.Result) error {
	if err := x.checkUpdate(op); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	rec, t, err := x.find(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	state, err := x.stateOf(t, rec)
	if err != nil || !x.meets(op.Condition, rec, state, r) {
		return err
	}
	moves := op.DelayMs != nil || op.DueMs != nil
	switch {
	case state == jobpb.State_STATE_RESERVED:
		return x.refuseReserved(rec, r)
	case state == jobpb.State_STATE_DEAD && moves:
		return x.refuseDead(rec, r)
	case state != jobpb.State_STATE_DEAD && op.GetMaxAttempts() != 0 && *op.MaxAttempts <= rec.attempts:
		// A kick gives a dead job all its attempts again.
		return x.refuse(r, jobpb.Code_INVALID, "max_attempts is %d; job %.40q has had %d attempts and needs one more", *op.MaxAttempts, x.name(rec), rec.attempts)
	}
	body, kind, rewrites, err := x.newContent(op, rec)
	if err != nil {
		return err
	}
	to, due := state, rec.fate.dueMS
	if moves {
		to, due = x.waitUntil(t, rec.seq, op.GetDueMs(), op.GetDelayMs())
	}
	err = x.move(t, rec, state, to, func(f *fate) {
		f.timedOut = false
		if moves {
			f.dueMS, f.lastDelayMS = due, due-x.clock()
		}
		if op.Priority != nil {
			f.priority = *op.Priority
		}
		if op.TtrMs != nil {
			f.ttrMS = *op.TtrMs
		}
		if op.MaxAttempts != nil {
			f.maxAttempts = *op.MaxAttempts
		}
		if rewrites {
			x.rewrite(rec, kind, body)
		}
		f.update(op)
		x.note(t, rec, jobpb.Event_UPDATED, to, f.attempts, "")
	})
	r.State, r.DueMs, r.Revision = to, due, rec.revision
	return err
}

// newContent gives a job the backoff and headers of an update, and says what its
// origin holds besides them if that is to be written again.
func (x *tx) newContent(op *jobpb.Update, rec *record) (body []byte, kind jobpb.BodyKind, rewrites bool, err error) {
	if op.Backoff != nil || op.Headers != nil {
		e, err := rec.decodeExtras()
		if err != nil {
			return nil, 0, false, err
		}
		if e == nil {
			e = &jobpb.Extras{}
		}
		if op.Backoff != nil {
			e.Backoff = op.Backoff
			if noBackoff(op.Backoff) {
				e.Backoff = nil
			}
		}
		if op.Headers != nil {
			e.Headers = op.Headers.List
		}
		if rec.extras, err = encodeExtras(e); err != nil {
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
	if _, err := x.job(rec.seq, true); err != nil { // for the body
		return nil, 0, false, err
	}
	return rec.body, rec.bodyKind, true, nil
}

// noBackoff says that a backoff says nothing.
func noBackoff(b *jobpb.Backoff) bool { return b.SizeVT() == 0 }

func (x *tx) checkUpdate(op *jobpb.Update) error {
	due, delay, ttr := op.GetDueMs(), op.GetDelayMs(), op.TtrMs
	switch {
	case op.DueMs != nil && op.DelayMs != nil:
		return job.Errorf(job.CodeInvalid, "delay_ms and due_ms are both given; give one")
	case op.DueMs != nil && (due < 1 || due > x.clock()+x.limits().MaxDelay.Milliseconds()):
		return job.Errorf(job.CodeInvalid, "due_ms is %d; it must be at least 1 and at most %d ms ahead", due, x.limits().MaxDelay.Milliseconds())
	case delay < 0 || delay > x.limits().MaxDelay.Milliseconds():
		return job.Errorf(job.CodeInvalid, "delay_ms is %d; it must be between 0 and %d", delay, x.limits().MaxDelay.Milliseconds())
	case ttr != nil && (*ttr < 1 || *ttr > x.limits().MaxTTR.Milliseconds()):
		return job.Errorf(job.CodeInvalid, "ttr_ms is %d; it must be between 1 and %d", *ttr, x.limits().MaxTTR.Milliseconds())
	case len(op.Body) > x.limits().HardMaxBodyBytes:
		return job.Errorf(job.CodeInvalid, "body has %d bytes; the limit is %d", len(op.Body), x.limits().HardMaxBodyBytes)
	case op.BodyKind != jobpb.BodyKind_BODY_BYTES && op.BodyKind != jobpb.BodyKind_BODY_JSON:
		return job.Errorf(job.CodeInvalid, "body_kind is %d; this release knows only 0 and 1", op.BodyKind)
	}
	e := &jobpb.Extras{Headers: op.Headers.GetList()}
	if op.Backoff != nil && !noBackoff(op.Backoff) {
		e.Backoff = op.Backoff
	}
	return x.limits().CheckExtras(e)
}

// waitUntil is the state of a job that is to wait, and its due instant: dueMS, or
// delayMS from now when that is 0; and later by its share of the topic's spread
// when it has to wait at all, or is a scheduled run's.
func (x *tx) waitUntil(t *topic, seq uint64, dueMS, delayMS int64) (jobpb.State, int64) {
	now := x.clock()
	if dueMS == 0 {
		dueMS = now + delayMS
	}
	if dueMS > now || x.planned {
		dueMS += spread(seq, t.settings.GetSpreadMs())
	}
	if dueMS <= now {
		return jobpb.State_STATE_READY, now
	}
	return jobpb.State_STATE_DELAYED, dueMS
}

// spread is a job's share of a window: at least 0, less than the window. Seqs one
// after the other have shares that fill the window evenly, however many they are
// (multiples of the golden ratio do, by their fractions).
func spread(seq uint64, windowMS int64) int64 {
	const golden = 0x9e3779b97f4a7c15 // its fraction, in 64 bits
	share, _ := bits.Mul64(seq*golden, uint64(windowMS))
	return int64(share)
}

// replace puts the job of an add in the place of the one that has its id. It is
// a new job: its seq is new, and what became of the old one is forgotten.
func (x *tx) replace(op *jobpb.Add, old *record, r *jobpb.Result) error {
	t, state, err := x.givingWay(op, old, r)
	if t == nil || err != nil {
		return err
	}
	// Before anything is changed.
	to := x.m.topics[op.Topic]
	if to == nil && x.topicsAtLimit() {
		return x.refuseTopic(op.Topic, r)
	}
	if s := x.settingsOf(op.Topic, to); s != nil && s.MaxPending != nil {
		pending := to.pending()
		if to == t && state < jobpb.State_STATE_DEAD {
			pending-- // the old job gives its room, too
		}
		if pending >= *s.MaxPending {
			return x.refuseFull(op.Topic, s, pending, r)
		}
	}
	if !old.standing.ended() {
		t.deleted++
	}
	// Its id goes to the new job, so there is nothing left to retain.
	if err := x.erase(t, old, listed(state)); err != nil {
		return err
	}
	r.Replaced = true
	return x.addNew(op, r)
}

// postpone gives the job that has an add's id the due instant of the add. A job
// that has ended is not to be postponed: the add makes a new one.
func (x *tx) postpone(op *jobpb.Add, old *record, r *jobpb.Result) error {
	t, state, err := x.givingWay(op, old, r)
	switch {
	case t == nil || err != nil:
		return err
	case old.standing.ended():
		return x.replace(op, old, r)
	case t.name != op.Topic:
		return x.refuse(r, jobpb.Code_ID_CONFLICT, "id %.40q is taken by a job with another topic", op.Id)
	case state == jobpb.State_STATE_DEAD:
		return x.refuseDead(old, r)
	}
	to, due := x.waitUntil(t, old.seq, op.DueMs, op.DelayMs)
	err = x.move(t, old, state, to, func(f *fate) {
		f.timedOut = false
		f.dueMS, f.lastDelayMS = due, due-x.clock()
		x.note(t, old, jobpb.Event_POSTPONED, to, f.attempts, "")
	})
	r.Seq, r.Id, r.State, r.DueMs, r.Revision = old.seq, x.name(old), to, due, old.revision
	r.Existing, r.Postponed = true, true
	return err
}

// givingWay says whether a job may be replaced or postponed by an add, with its
// topic and state. When the topic is nil the add is refused and r says why.
func (x *tx) givingWay(op *jobpb.Add, old *record, r *jobpb.Result) (*topic, jobpb.State, error) {
	t, err := x.topicOf(old)
	if err != nil {
		return nil, 0, err
	}
	state, err := x.stateOf(t, old)
	if err != nil || !x.meets(op.Condition, old, state, r) {
		return nil, 0, err
	}
	if state == jobpb.State_STATE_RESERVED {
		return nil, 0, x.refuseReserved(old, r)
	}
	return t, state, nil
}

// meets says whether a job in the given state is as the condition wants it; if
// not, the operation is refused.
func (x *tx) meets(c *jobpb.Condition, rec *record, state jobpb.State, r *jobpb.Result) bool {
	fits := (c.GetRevision() == 0 || c.GetRevision() == rec.revision) &&
		(len(c.GetStates()) == 0 || slices.Contains(c.GetStates(), state))
	if !fits && x.replies {
		r.Code = jobpb.Code_CONDITION_FAILED
		word := strings.ToLower(strings.TrimPrefix(state.String(), "STATE_"))
		r.Message = fmt.Sprintf("job %.40q is %s with revision %d, which is not what the condition asks for", x.name(rec), word, rec.revision)
	}
	return fits
}

func (x *tx) refuseReserved(rec *record, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_ALREADY_RESERVED, "job %.40q is reserved; it belongs to its consumer until that is done with it", x.name(rec))
}

func (x *tx) refuseDead(rec *record, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_ALREADY_DEAD, "job %.40q is dead and has no due instant; kick it, or replace it", x.name(rec))
}
