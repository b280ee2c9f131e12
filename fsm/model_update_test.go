package fsm

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// addTakenID handles an add whose id is taken, and reports whether a job must still be
// made.
func (m *model) addTakenID(a *jobpb.Add, old *modelJob, r *jobpb.Result) bool {
	over := old.ended() || old.State == jobpb.State_STATE_DEAD
	replaces := a.IfExists == jobpb.IfExists_IF_EXISTS_REPLACE || a.IfExists == jobpb.IfExists_IF_EXISTS_REPLACE_ENDED && over
	if !replaces && a.IfExists != jobpb.IfExists_IF_EXISTS_POSTPONE {
		m.addExisting(a, old, r)
		return false
	}
	switch {
	case !meets(a.Condition, old):
		r.Code = jobpb.Code_CONDITION_FAILED
	case old.State == jobpb.State_STATE_RESERVED:
		r.Code = jobpb.Code_ALREADY_RESERVED
	case (replaces || old.ended()) && m.early(a.DueMs, a.DelayMs, a.Options.GetExpiresMs()):
		r.Code = jobpb.Code_INVALID
	case (replaces || old.ended()) && !m.mayPush(a.Topic, a.Options.GetPushUrl()):
		r.Code = jobpb.Code_INVALID
	case (replaces || old.ended()) && m.topics[a.Topic] == nil && m.topicsAtLimit():
		r.Code = jobpb.Code_TOO_MANY_TOPICS
	case (replaces || old.ended()) && m.full(a.Topic, old.waitingIn(a.Topic)):
		r.Code = jobpb.Code_TOPIC_FULL
	case replaces || old.ended(): // there is nothing to postpone
		if !old.ended() {
			m.topics[old.Topic].Deleted++
		}
		m.remove(old)
		r.Replaced = true
		return true
	case old.Topic != a.Topic:
		r.Code = jobpb.Code_ID_CONFLICT
	case old.State == jobpb.State_STATE_DEAD:
		r.Code = jobpb.Code_ALREADY_DEAD
	case m.early(a.DueMs, a.DelayMs, cmp.Or(a.Options.GetExpiresMs(), old.expiresOwn)):
		r.Code = jobpb.Code_INVALID
	default:
		old.expiresOwn = cmp.Or(a.Options.GetExpiresMs(), old.expiresOwn)
		m.setDue(old, a.DueMs, a.DelayMs)
		old.Revision++
		old.late = false
		m.note(old, jobpb.Event_POSTPONED, old.Attempts, "")
		r.Seq, r.Id, r.State, r.DueMs, r.Revision = old.Seq, old.Id, old.State, old.DueMs, old.Revision
		r.Existing, r.Postponed = true, true
	}
	return false
}

// early reports whether a job would expire before it is due.
func (m *model) early(due, delay, expires int64) bool {
	if due == 0 {
		due = m.after(delay)
	}
	return expires != 0 && expires <= max(due, m.clock)
}

func (m *model) setDue(j *modelJob, due, delay int64) {
	if due == 0 {
		due = m.after(delay)
	}
	j.DueMs = due
	if due > m.clock || m.planned {
		if later := due + m.share(j); j.expiresOwn == 0 || later < j.expiresOwn {
			j.DueMs = later
		}
	}
	j.DueMs = max(j.DueMs, m.clock)
	j.DelayMs = j.DueMs - m.clock
	if j.DelayMs > 0 {
		j.State = jobpb.State_STATE_DELAYED
	} else {
		m.makeReady(j)
	}
}

func meets(c *jobpb.Condition, j *modelJob) bool {
	return c == nil || (c.Revision == 0 || c.Revision == j.Revision) && (len(c.States) == 0 || slices.Contains(c.States, j.State)) &&
		(c.Topic == "" || c.Topic == j.Topic) && wants(c.Filter, j)
}

func (m *model) update(op *jobpb.Update, r *jobpb.Result) {
	due, delay := op.GetDueMs(), op.GetDelayMs()
	bad := op.DueMs != nil && (op.DelayMs != nil || due < 1 || due > m.clock+1_000_000_000_000) ||
		delay < 0 || delay > 1_000_000_000_000 || op.TtrMs != nil && *op.TtrMs < 1 || op.Ref.Id == "" && op.Ref.Seq == 0 ||
		badChange(op) || badFilter(op.Condition.GetFilter())
	if bad {
		r.Code = jobpb.Code_INVALID
		return
	}
	j := m.find(op.Ref)
	if j == nil {
		r.Code = jobpb.Code_NOT_FOUND
		return
	}
	moves := op.DueMs != nil || op.DelayMs != nil
	switch {
	case op.Ref.Generation != 0 && (j.State != jobpb.State_STATE_RESERVED || op.Ref.Generation != j.generation):
		r.Code = jobpb.Code_STALE_TOKEN
		return
	case !meets(op.Condition, j):
		r.Code = jobpb.Code_CONDITION_FAILED
		return
	case j.State == jobpb.State_STATE_RESERVED:
		r.Code = jobpb.Code_ALREADY_RESERVED
		return
	case j.State == jobpb.State_STATE_DEAD && moves:
		r.Code = jobpb.Code_ALREADY_DEAD
		return
	case j.State != jobpb.State_STATE_DEAD && op.GetMaxAttempts() != 0 && *op.MaxAttempts <= j.Attempts:
		r.Code = jobpb.Code_INVALID
		return
	}
	expires := j.expiresOwn
	if op.ExpiresMs != nil {
		expires = *op.ExpiresMs
	}
	if j.State != jobpb.State_STATE_DEAD && (moves || op.ExpiresMs != nil) {
		at := due
		if !moves {
			at = j.DueMs
		}
		if m.early(at, delay, expires) {
			r.Code = jobpb.Code_INVALID
			return
		}
	}
	if op.PushUrl != nil && !m.mayPush(j.Topic, *op.PushUrl) {
		r.Code = jobpb.Code_INVALID
		return
	}
	j.expiresOwn = expires
	if moves {
		m.setDue(j, due, delay)
	}
	j.late = false
	if op.Priority != nil {
		j.Priority = *op.Priority
	}
	if op.TtrMs != nil {
		j.TtrMs = *op.TtrMs
	}
	if op.MaxAttempts != nil {
		j.MaxAttempts = *op.MaxAttempts
	}
	if op.Body != nil {
		j.Body, j.BodyKind = op.Body, op.BodyKind
		j.first.Body, j.first.BodyKind = op.Body, op.BodyKind // what an add is compared with
	}
	if j.State == jobpb.State_STATE_READY {
		m.makeReady(j) // it gets a new place
	}
	m.setOptions(op, j)
	j.Revision++
	m.note(j, jobpb.Event_UPDATED, j.Attempts, "")
	r.Seq, r.Id, r.State, r.DueMs, r.Revision = j.Seq, j.Id, j.State, j.DueMs, j.Revision
}

// badChange reports whether backoffs and headers that the random test makes are invalid.
func badChange(op *jobpb.Update) bool {
	h := op.Headers.GetList()
	return op.Backoff.GetFactorPermille() != 0 || len(h) == 3 || op.GetExpiresMs() < 0 || len(op.GetPushUrl()) > 2000
}

func (m *model) setOptions(op *jobpb.Update, j *modelJob) {
	e := &jobpb.JobOptions{Backoff: j.Options.GetBackoff(), Headers: j.Options.GetHeaders(), ExpiresMs: j.Options.GetExpiresMs(), PushUrl: j.Options.GetPushUrl()}
	if op.Backoff != nil {
		if e.Backoff = op.Backoff; len(op.Backoff.DelaysMs) == 0 {
			e.Backoff = nil
		}
	}
	if op.Headers != nil {
		e.Headers = op.Headers.List
	}
	if op.PushUrl != nil {
		e.PushUrl = *op.PushUrl
	}
	if e.PushUrl == "" && e.Backoff == nil && len(e.Headers) == 0 && e.ExpiresMs == 0 {
		e = nil
	}
	j.Options, j.first.Options = e, e
}

// atomicAdd works on a copy, which becomes the model on success.
func (m *model) atomicAdd(op *jobpb.AtomicAdd, r *jobpb.Result) {
	// oplog.CheckOp comes before the state.
	ids, bad := map[string]bool{}, len(op.Adds) == 0
	for _, a := range op.Adds {
		bad = bad || badAdd(a) || a.IfExists > jobpb.IfExists_IF_EXISTS_KEEP || a.Id != "" && ids[a.Id]
		ids[a.Id] = true
	}
	if bad {
		r.Code = jobpb.Code_INVALID
		return
	}
	trial := m.clone()
	var done *modelJob // whose end is to come
	finish := &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: op.Finish}}
	if op.Finish != nil {
		if m.clone().change(finish, r); r.Code != jobpb.Code_OK {
			return
		}
		done = trial.find(op.Finish.Ref)
		trial.named = map[string]bool{done.Topic: true}
	} else {
		trial.named = map[string]bool{}
	}
	if m.crossesSlots(op.Adds, done) {
		r.Code = jobpb.Code_CROSS_SLOT
		return
	}
	for _, a := range op.Adds {
		trial.named[a.Topic] = true
	}
	for _, a := range op.Adds {
		if done != nil && a.Id != "" && a.Id == done.Id {
			trial.topics[done.Topic].Finished++
			trial.remove(done) // its id is taken
			done = nil
		}
	}
	var parts []*jobpb.Result
	for _, a := range op.Adds {
		part := &jobpb.Result{}
		if trial.add(a, part); part.Code != jobpb.Code_OK {
			r.Code = part.Code
			return
		}
		parts = append(parts, part)
	}
	if r.Code == jobpb.Code_OK {
		r.Details = &jobpb.Details{Parts: parts}
		if done != nil {
			trial.change(finish, &jobpb.Result{})
		}
		*m = *trial
		m.named = nil
	}
}

func (m *model) clone() *model {
	c := *m
	c.jobs, c.topics = map[uint64]*modelJob{}, map[string]*modelTopic{}
	for seq, j := range m.jobs {
		k := &modelJob{ownID: j.ownID, generation: j.generation, deadRank: j.deadRank, late: j.late, expiresOwn: j.expiresOwn}
		proto.Merge(&k.Job, &j.Job)
		proto.Merge(&k.first, &j.first)
		c.jobs[seq] = k
	}
	for name, t := range m.topics {
		u := &modelTopic{number: t.number, emptySince: t.emptySince, deaths: t.deaths, limit: t.limit.clone(), covered: t.covered}
		proto.Merge(&u.Topic, &t.Topic)
		c.topics[name] = u
	}
	return &c
}

func (m *model) revisions() map[uint64]uint32 {
	revisions := map[uint64]uint32{}
	for seq, j := range m.jobs {
		revisions[seq] = j.Revision
	}
	return revisions
}

// dateChanges sets the time of modification of the jobs whose revision has changed.
func (m *model) dateChanges(before map[uint64]uint32) {
	for seq, j := range m.jobs {
		if j.Revision != before[seq] {
			j.ModifiedMs = m.clock
			if j.Revision == 1 { // an imported job was added elsewhere
				j.ModifiedMs = j.CreatedMs
			}
		}
	}
}
