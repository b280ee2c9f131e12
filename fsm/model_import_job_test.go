package fsm

import (
	"strconv"

	"tarry/job/jobpb"
)

func init() {
	modelOps["import_job"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.importJob(op.GetImportJob(), r) },
		some:  (*simulation).importOp,
	}
}

func badImport(op *jobpb.ImportJob) bool {
	exhausted := !op.Dead && op.Add.MaxAttempts > 0 && op.Attempts >= op.Add.MaxAttempts
	return badAdd(op.Add) || exhausted || op.Add.TopicTtr || op.Add.TopicAttempts || op.Add.DueMs == 0 || op.Add.IfExists != 0 || op.Add.Condition != nil || op.DiedMs != 0 && !op.Dead ||
		op.DelayMs < 0 || op.CreatedMs < 0 || op.DiedMs < 0 || len(op.Reason) > 1000 || len(op.LastError) > 1000
}

func (m *model) importJob(op *jobpb.ImportJob, r *jobpb.Result) {
	a := op.Add
	if badImport(op) || a.DueMs > m.clock+maxDelay {
		r.Code = jobpb.Code_INVALID
		return
	}
	if old := m.taken(a.Id); a.Id != "" && old != nil {
		if old.Topic != a.Topic || string(old.Body) != string(a.Body) || old.BodyKind != a.BodyKind {
			r.Code = jobpb.Code_ID_CONFLICT
			return
		}
		r.Seq, r.Id, r.State, r.DueMs, r.Revision, r.Existing = old.Seq, old.Id, old.State, old.DueMs, old.Revision, true
		return
	}
	t := m.topics[a.Topic]
	switch {
	case !m.mayPush(a.Topic, a.Options.GetPushUrl()):
		r.Code = jobpb.Code_INVALID
		return
	case t == nil && m.topicsAtLimit():
		r.Code = jobpb.Code_TOO_MANY_TOPICS
		return
	case t == nil:
		t = m.newTopic(a.Topic)
	}
	t.Added++
	j := m.imported(op)
	m.jobs[j.Seq] = j
	switch {
	case op.Dead:
		deaths := t.Died
		m.die(t, j)
		t.Died, j.DiedMs, j.DueMs = deaths, min(op.DiedMs, m.clock), min(a.DueMs, m.clock)
	case a.DueMs > m.clock:
		j.State = jobpb.State_STATE_DELAYED
	default:
		m.makeReady(j)
	}
	added := &jobpb.Event{Kind: jobpb.Event_ADDED, AtMs: j.CreatedMs, State: jobpb.State_STATE_READY, DueMs: j.DueMs}
	if j.DueMs > j.CreatedMs {
		added.State = jobpb.State_STATE_DELAYED
	}
	j.History = []*jobpb.Event{added}
	// It is as if it had just been added there, unless something has happened to it.
	j.Revision = 1
	if op.Dead || j.DelayMs != j.DueMs-j.CreatedMs || op.Reason+op.LastError != "" ||
		op.Attempts+op.Reserves+op.Timeouts+op.Releases+op.Buries+op.Kicks > 0 {
		j.Revision = 2
	}
	r.Seq, r.Id, r.State, r.DueMs, r.Revision = j.Seq, j.Id, j.State, j.DueMs, j.Revision
}

// imported returns the job without a state.
func (m *model) imported(op *jobpb.ImportJob) *modelJob {
	a := op.Add
	j := &modelJob{ownID: a.Id != "", first: jobpb.Add{
		Id: a.Id, Topic: a.Topic, Body: a.Body, BodyKind: a.BodyKind, Priority: a.Priority,
		DueMs: a.DueMs, TtrMs: a.TtrMs, MaxAttempts: a.MaxAttempts, Options: a.Options,
	}}
	j.Options, j.expiresOwn = a.Options, a.Options.GetExpiresMs()
	j.Seq, j.Id, j.Topic, j.Body, j.BodyKind = m.takeNumber(), a.Id, a.Topic, a.Body, a.BodyKind
	if a.Id == "" {
		j.Id = "$0-" + strconv.FormatUint(j.Seq, 10)
	}
	j.Priority, j.TtrMs, j.MaxAttempts = a.Priority, j.first.TtrMs, j.first.MaxAttempts
	j.CreatedMs, j.DueMs, j.DelayMs = min(op.CreatedMs, m.clock), a.DueMs, op.DelayMs
	j.Attempts, j.Reserves, j.Timeouts = op.Attempts, op.Reserves, op.Timeouts
	j.Releases, j.Buries, j.Kicks = op.Releases, op.Buries, op.Kicks
	j.Reason, j.LastError = op.Reason, op.LastError
	return j
}

// importOp makes jobs of which some have waited long, and some are imported twice.
func (s *simulation) importOp() *jobpb.Op {
	op := &jobpb.ImportJob{
		Add: s.addOp().GetAdd(), Dead: s.rng.IntN(3) == 0, CreatedMs: s.now + s.pick(-5000, -100, 0, 50),
		Reason: deadReasons[s.rng.IntN(len(deadReasons))],
	}
	if s.rng.IntN(8) > 0 {
		op.Add.IfExists, op.Add.Condition, op.Add.TopicTtr, op.Add.TopicAttempts = 0, nil, false, false
	}
	op.Add.DueMs, op.Add.DelayMs = s.now+s.pick(-4000, -300, 0, 1, 40, 600, 5000, -s.now), 0
	if s.rng.IntN(3) == 0 {
		op.Add.Id, op.Add.Body, op.Add.BodyKind = s.jobID(8), nil, 0
	}
	if op.Dead {
		op.DiedMs = s.now + s.pick(-200, 0, 30)
	}
	if s.rng.IntN(2) == 0 {
		op.Attempts, op.Reserves, op.Timeouts = uint32(s.pick(0, 1, 2, 30)), 3, uint32(s.pick(0, 1))
		op.Releases, op.Buries, op.Kicks, op.LastError = uint32(s.pick(0, 2)), uint32(s.pick(0, 1)), uint32(s.pick(0, 1)), "it failed"
		op.DelayMs = s.pick(0, 300, -1)
	} else {
		op.DelayMs = max(op.Add.DueMs-op.CreatedMs, 0) // as if it was just added
		op.Reason = ""
	}
	return &jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: op}}
}
