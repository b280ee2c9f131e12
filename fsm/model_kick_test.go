package fsm

import (
	"cmp"

	"tarry/job/jobpb"
)

// revive makes a dead job ready, which moves to the topic to.
func (m *model) revive(j *modelJob, to string) {
	m.makeReady(j)
	j.DiedMs = 0
	j.Attempts = 0
	m.restartExpiry(j, to)
	j.Kicks++
	j.Revision++
}

func (m *model) kickTopic(op *jobpb.KickTopic, r *jobpb.Result) {
	if op.Max == 0 || op.Max > 10_000 {
		r.Code = jobpb.Code_INVALID
		return
	}
	dead := m.sorted(func(j *modelJob) bool { return j.State == jobpb.State_STATE_DEAD && j.Topic == op.Topic },
		func(a, b *modelJob) int { return cmp.Compare(a.deadRank, b.deadRank) })
	for i, j := range dead {
		if i == int(op.Max) {
			break
		}
		m.revive(j, op.Topic)
		m.noteKick(j, op.Topic)
		r.Count++
	}
	if !op.OrDelayed || len(dead) > 0 {
		return
	}
	delayed := m.sorted(func(j *modelJob) bool { return j.State == jobpb.State_STATE_DELAYED && j.Topic == op.Topic },
		func(a, b *modelJob) int { return cmp.Or(cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq)) })
	for _, j := range delayed[:min(len(delayed), int(op.Max))] {
		m.kickDelayed(j)
		m.noteKick(j, op.Topic)
		r.Count++
	}
}

func (m *model) kickDelayed(j *modelJob) {
	j.DueMs = m.clock
	j.Kicks++
	j.Revision++
	m.makeReady(j)
}
