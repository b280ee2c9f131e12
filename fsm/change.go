package fsm

import (
	"fmt"
	"strings"

	"tarry/job/jobpb"
)

// missing is the failure of finding an index entry without its job: damage, or
// a defect.
func missing(seq uint64, t *topic, state jobpb.State) error {
	return fmt.Errorf("topic %q lists job %d in %s, but the job does not exist", t.name, seq, state)
}

// find looks up the job that an operation names, and fences it by the token, if
// there is one. When it answers nil the operation is refused, r says why, and the
// caller has only to return err.
func (x *tx) find(ref *jobpb.Ref, r *jobpb.Result) (*record, *topic, error) {
	rec, t, err := x.findUnfenced(ref, r)
	if rec == nil || err != nil {
		return nil, nil, err
	}
	if generation := ref.GetGeneration(); generation != 0 && !rec.isHeldBy(generation) {
		return nil, nil, x.refuseStale(rec, r)
	}
	return rec, t, nil
}

// isHeldBy reports whether the reservation of that generation is live.
func (rec *record) isHeldBy(generation uint32) bool {
	return rec.standing == reserved && rec.generation == generation
}

func (x *tx) refuseStale(rec *record, r *jobpb.Result) error {
	return x.refuse(r, jobpb.Code_STALE_TOKEN, "the token's reservation of job %.40q is over", x.name(rec))
}

// findUnfenced is find without regard to the token.
func (x *tx) findUnfenced(ref *jobpb.Ref, r *jobpb.Result) (rec *record, t *topic, err error) {
	id, seq := ref.GetId(), ref.GetSeq()
	switch {
	case id == "" && seq == 0:
		return nil, nil, x.refuse(r, jobpb.Code_INVALID, "the job is named by neither id nor seq")
	case id != "":
		rec, err = x.jobByID(id)
	default:
		rec, err = x.job(seq, false)
	}
	if err != nil {
		return nil, nil, err
	}
	if rec == nil || (seq != 0 && rec.seq != seq) {
		return nil, nil, x.refuse(r, jobpb.Code_NOT_FOUND, "%s does not exist; it may have been finished or deleted", jobWords(id, seq))
	}
	if rec.standing.ended() {
		return nil, nil, x.refuse(r, jobpb.Code_NOT_FOUND, "%s was %s and is retained for readers only", jobWords(id, seq), rec.endedWords())
	}
	t, err = x.topicOf(rec)
	if err != nil {
		return nil, nil, err
	}
	if x.replies {
		r.Seq, r.Id, r.DueMs = rec.seq, x.name(rec), rec.fate.dueMS
	}
	return rec, t, nil
}

func jobWords(id string, seq uint64) string {
	switch {
	case id == "":
		return fmt.Sprintf("job number %d", seq)
	case seq == 0:
		return fmt.Sprintf("job %.40q", id)
	default:
		return fmt.Sprintf("job %.40q with number %d", id, seq)
	}
}

// findReserved is find for operations that need a reservation.
func (x *tx) findReserved(ref *jobpb.Ref, r *jobpb.Result) (*record, *topic, error) {
	rec, t, err := x.find(ref, r)
	if rec == nil || err != nil {
		return nil, nil, err
	}
	if !x.mayEnd(ref, rec, t, r) {
		return nil, nil, nil
	}
	return rec, t, nil
}

// mayEnd reports whether a job is reserved, and its reservation named as its topic
// wants it; if not, the operation is refused.
func (x *tx) mayEnd(ref *jobpb.Ref, rec *record, t *topic, r *jobpb.Result) bool {
	switch {
	case t.settings.GetRequireToken() && ref.GetGeneration() == 0:
		_ = x.refuse(r, jobpb.Code_TOKEN_REQUIRED, "token is missing; topic %.40q requires the token of the reservation", t.name)
	case rec.standing != reserved:
		_ = x.refuse(r, jobpb.Code_NOT_RESERVED, "job %.40q is not reserved", x.name(rec))
	default:
		return true
	}
	return false
}

// findDone is findReserved for a finish. The job is in the state from: not in
// STATE_RESERVED when the finish is late and its topic accepts that.
//
// A late finish is as good as one in time when nobody else has anything to do with
// the job: it was not handed out since, which would be another generation, and nobody
// asked for another run of it by an update or by postponing it. Falling due, dying of
// the last attempt, a kick and a move change nothing about the work that is done.
func (x *tx) findDone(ref *jobpb.Ref, r *jobpb.Result) (rec *record, t *topic, from jobpb.State, err error) {
	rec, t, err = x.findUnfenced(ref, r)
	if rec == nil || err != nil {
		return nil, nil, 0, err
	}
	generation := ref.GetGeneration()
	switch {
	case generation == 0:
		if !x.mayEnd(ref, rec, t, r) {
			return nil, nil, 0, nil
		}
	case rec.isHeldBy(generation):
	case rec.timedOut && rec.generation == generation && t.settings.GetLateFinish() == jobpb.LateFinish_LATE_FINISH_ACCEPT:
		from, err = x.stateOf(t, rec)
		return rec, t, from, err
	default:
		return nil, nil, 0, x.refuseStale(rec, r)
	}
	return rec, t, jobpb.State_STATE_RESERVED, nil
}

// finish removes a job whose work is done.
func (x *tx) finish(op *jobpb.Finish, r *jobpb.Result) error {
	rec, t, from, err := x.findDone(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	t.finished++
	return x.end(t, rec, from, jobpb.Event_FINISHED, "")
}

// delete removes a job in any state; with spare_reserved, a reserved one only for
// its holder.
func (x *tx) delete(op *jobpb.Delete, r *jobpb.Result) error {
	rec, t, err := x.find(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	state, err := x.stateOf(t, rec)
	if err != nil {
		return err
	}
	if op.SpareReserved && state == jobpb.State_STATE_RESERVED && op.Ref.GetGeneration() == 0 {
		return x.refuse(r, jobpb.Code_ALREADY_RESERVED, "job %.40q is reserved; only its holder can delete it", x.name(rec))
	}
	if !x.meets(op.Condition, rec, state, r) {
		return nil
	}
	t.deleted++
	return x.end(t, rec, state, jobpb.Event_DELETED, "")
}

// release gives a reserved job back: ready, delayed, or dead when its attempts
// are used up.
func (x *tx) release(op *jobpb.Release, r *jobpb.Result) error {
	if op.DelayMs < 0 || op.DelayMs > x.limits().MaxDelay.Milliseconds() {
		return x.refuse(r, jobpb.Code_INVALID, "delay_ms is %d; it must be between 0 and %d", op.DelayMs, x.limits().MaxDelay.Milliseconds())
	}
	if err := x.limits().CheckReason("reason", op.Reason); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if op.Undelivered {
		t.repay(x.clock(), op.ReservedMs)
	}
	to, delay := jobpb.State_STATE_READY, op.DelayMs
	switch {
	case !op.Undelivered && rec.exhausted():
		to = jobpb.State_STATE_DEAD
	case op.DelayMs > 0 && !op.Returned:
		to = jobpb.State_STATE_DELAYED
	case op.Backoff && !op.Returned && !op.Undelivered:
		if delay, err = x.backoff(t, rec, op.Entropy); err != nil {
			return err
		}
		if delay > 0 {
			to = jobpb.State_STATE_DELAYED
		}
	}
	attempt := rec.attempts
	err = x.move(t, rec, jobpb.State_STATE_RESERVED, to, func(f *fate) {
		f.release(op, delay)
		switch to {
		case jobpb.State_STATE_DEAD:
			if op.Returned || op.Reason == "" {
				f.reason = fmt.Sprintf("%s on attempt %d of %d", releaseWords(op), rec.attempts, rec.fate.maxAttempts)
			}
			x.kill(t, f)
		case jobpb.State_STATE_DELAYED:
			f.dueMS = x.clock() + delay
			f.wait()
		default:
			f.wait()
		}
		x.note(t, rec, jobpb.Event_RELEASED, to, attempt, releaseReason(op))
	})
	r.State, r.DueMs, r.Revision = to, rec.fate.dueMS, rec.revision
	return err
}

// releaseReason is why a job was given back, for its history.
func releaseReason(op *jobpb.Release) string {
	switch {
	case op.Undelivered:
		return "the consumer never saw it; the attempt does not count"
	case op.Returned:
		return releaseWords(op)
	}
	return op.Reason
}

// release does to a fate what every release does, wherever the job goes. delayMS
// is the wait that it asked for.
func (f *fate) release(op *jobpb.Release, delayMS int64) {
	if op.Undelivered {
		// As if it had not been handed out. The generation stays ahead.
		f.attempts--
		f.reserves--
	}
	if op.Returned {
		return
	}
	if !op.Undelivered {
		f.releases++
	}
	f.setPriority(op.SetPriority, op.Priority)
	f.setReason(op.Reason)
	f.lastDelayMS = delayMS
}

func releaseWords(op *jobpb.Release) string {
	if op.Returned {
		return "the consumer's connection ended"
	}
	return "released"
}

// exhausted says that the job has no attempt left.
func (rec *record) exhausted() bool {
	return rec.fate.maxAttempts != 0 && rec.attempts >= rec.fate.maxAttempts
}

// touchJob starts a reservation's time to run again.
func (x *tx) touchJob(op *jobpb.Touch, r *jobpb.Result) error {
	if op.TtrMs < 0 || op.TtrMs > x.limits().MaxTTR.Milliseconds() {
		return x.refuse(r, jobpb.Code_INVALID, "ttr_ms is %d; it must be between 0 (the job's own) and %d", op.TtrMs, x.limits().MaxTTR.Milliseconds())
	}
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	ttr := op.TtrMs
	if ttr == 0 {
		ttr = rec.fate.ttrMS
	}
	err = x.move(t, rec, jobpb.State_STATE_RESERVED, jobpb.State_STATE_RESERVED, func(f *fate) {
		f.reservedUntil = x.clock() + ttr
	})
	r.State, r.ReservedUntilMs, r.Revision = jobpb.State_STATE_RESERVED, rec.reservedUntil, rec.revision
	return err
}

// bury sets a reserved job aside.
func (x *tx) bury(op *jobpb.Bury, r *jobpb.Result) error {
	if err := x.limits().CheckReason("reason", op.Reason); err != nil {
		return x.refuse(r, jobpb.Code_INVALID, "%s", err)
	}
	rec, t, err := x.findReserved(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	err = x.move(t, rec, jobpb.State_STATE_RESERVED, jobpb.State_STATE_DEAD, func(f *fate) {
		f.setPriority(op.SetPriority, op.Priority)
		f.setReason(op.Reason)
		f.buries++
		x.kill(t, f)
		x.note(t, rec, jobpb.Event_BURIED, jobpb.State_STATE_DEAD, f.attempts, op.Reason)
	})
	r.State, r.Revision = jobpb.State_STATE_DEAD, rec.revision
	return err
}

// wait ends a reservation or a death: the job waits to be handed out.
func (f *fate) wait() {
	f.standing, f.reservedUntil, f.rank = waiting, 0, 0
}

// kill sets a job aside, behind those that died before it.
func (x *tx) kill(t *topic, f *fate) {
	f.standing, f.reservedUntil, f.rank, f.diedMS = dead, 0, t.rank, x.clock()
	t.rank++
	t.died++
}

func (f *fate) setPriority(set bool, priority uint32) {
	if set {
		f.priority = priority
	}
}

// setReason keeps the last reason that a consumer gave.
func (f *fate) setReason(reason string) {
	if reason != "" {
		f.reason = strings.Clone(reason) // it outlives the entry
		f.lastError = f.reason
	}
}
