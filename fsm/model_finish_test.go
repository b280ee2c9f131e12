package fsm

import (
	"cmp"

	"tarry/job/jobpb"
)

// checkRef returns OK if the job and the token are as an operation needs them.
func (m *model) checkRef(op *jobpb.Op, ref *jobpb.Ref, j *modelJob) jobpb.Code {
	held, settings := j.State == jobpb.State_STATE_RESERVED, m.settings[j.Topic]
	fenced := ref.Generation != 0
	live := held && ref.Generation == j.generation
	switch op.Kind.(type) {
	case *jobpb.Op_Delete, *jobpb.Op_ReserveJob, *jobpb.Op_Kick:
		if fenced && !live {
			return jobpb.Code_STALE_TOKEN
		}
		return jobpb.Code_OK
	case *jobpb.Op_Finish:
		if fenced && j.late && ref.Generation == j.generation && settings.GetLateFinish() == 0 {
			return jobpb.Code_OK
		}
	}
	switch {
	case fenced && !live:
		return jobpb.Code_STALE_TOKEN
	case !fenced && settings.GetRequireToken():
		return jobpb.Code_TOKEN_REQUIRED
	case !held:
		return jobpb.Code_NOT_RESERVED
	}
	return jobpb.Code_OK
}

func (m *model) retention(topic string) int64 { return m.settings[topic].GetRetainMs() }

func (j *modelJob) ended() bool {
	return j.State == jobpb.State_STATE_FINISHED || j.State == jobpb.State_STATE_DELETED
}

// taken returns the job that has an id, retained ones included.
func (m *model) taken(id string) *modelJob {
	for _, j := range m.jobs {
		if j.Id == id {
			return j
		}
	}
	return nil
}

// end finishes or deletes a job: it is removed or retained.
func (m *model) end(j *modelJob, as jobpb.State) {
	keep := m.retention(j.Topic)
	if keep == 0 {
		m.remove(j)
		return
	}
	j.State = as
	j.Revision++
	j.DiedMs, j.ReservedUntilMs = 0, 0
	j.EndedMs, j.RetainedUntilMs = m.clock, (m.clock+keep+999)/1000*1000
	kind := jobpb.Event_FINISHED
	if as == jobpb.State_STATE_DELETED {
		kind = jobpb.Event_DELETED
	}
	if j.expiring {
		kind = jobpb.Event_EXPIRED
	}
	m.note(j, kind, j.Attempts, "")
	retained := m.sorted(func(o *modelJob) bool { return o.Topic == j.Topic && o.ended() }, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.RetainedUntilMs, b.RetainedUntilMs), cmp.Compare(a.Seq, b.Seq))
	})
	most := cmp.Or(int(m.settings[j.Topic].GetRetainMax()), m.maxRetained)
	for _, first := range retained[:min(2, max(0, len(retained)-most))] {
		m.remove(first)
	}
}

// note adds an event to a job's history.
func (m *model) note(j *modelJob, kind jobpb.Event_Kind, attempt uint32, text string) {
	if m.retention(j.Topic) == 0 {
		return
	}
	e := &jobpb.Event{Kind: kind, AtMs: m.clock, State: j.State, Attempt: attempt}
	if kind == jobpb.Event_RESERVED {
		e.Consumer = text
	} else {
		e.Reason = text
	}
	if j.State == jobpb.State_STATE_READY || j.State == jobpb.State_STATE_DELAYED {
		e.DueMs = j.DueMs
	}
	j.History = append(j.History, e)
	if len(j.History) > 32 {
		j.History = append(j.History[:1:1], j.History[2:]...)
		j.HistoryDropped++
	}
}

// noteRelease is note for a job that was released on the attempt.
func (m *model) noteRelease(j *modelJob, op *jobpb.Release, attempt uint32) {
	reason := op.Reason
	switch {
	case op.Undelivered && reason == "":
		reason = "the consumer never saw it; the attempt does not count"
	case op.Returned:
		reason = "the consumer's connection ended"
	}
	m.note(j, jobpb.Event_RELEASED, attempt, reason)
}

// noteKick is note for a job that was kicked, perhaps into another topic.
func (m *model) noteKick(j *modelJob, from string) {
	m.note(j, jobpb.Event_KICKED, j.Attempts, "")
	m.noteMove(j, from)
}

func (m *model) noteMove(j *modelJob, from string) {
	if j.Topic != from {
		m.note(j, jobpb.Event_MOVED, j.Attempts, "from "+from)
	}
}
