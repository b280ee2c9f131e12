package fsm

import (
	"cmp"

	"tarry/job/jobpb"
)

// modelReset is how the clock was set back.
type modelReset struct {
	epoch       uint64
	ahead, back int64  // ahead 0: no job remains to be changed
	limit, next uint64 // seqs
	justNow     bool   // by the entry under way
}

// startEntry sets the clock by the time of an entry.
func (m *model) startEntry(now int64, rounded bool, epoch, term uint64) {
	m.takeEffects(now, epoch, term)
	m.term, m.entryEpoch, m.rounded = term, epoch, false
	if epoch == m.reset.epoch {
		m.clock = max(m.clock, now)
		m.rounded = rounded && now == m.clock
	}
	m.reset.justNow, m.walk.justNow = false, false
}

// after returns the end of what lasts for a time from the entry on.
func (m *model) after(ms int64) int64 {
	if m.rounded && ms > 0 {
		ms++
	}
	return m.clock + ms
}

func (m *model) resetClock(op *jobpb.ResetClock, r *jobpb.Result) {
	if m.reset.ahead != 0 || op.Epoch != m.reset.epoch || op.ToMs < 1 || op.ToMs >= m.clock {
		r.Code = jobpb.Code_CONDITION_FAILED
		return
	}
	m.reset = modelReset{epoch: op.Epoch + 1, ahead: m.clock, back: m.clock - op.ToMs, limit: m.nextSeq, justNow: true}
	was := m.clock
	m.clock = op.ToMs
	m.ahead = nil
	for _, t := range m.topics {
		t.emptySince = min(t.emptySince, m.clock)
		if t.PausedUntilMs > m.clock+t.PauseMs && m.clock+t.PauseMs > 0 {
			t.PausedUntilMs = m.clock + t.PauseMs
		}
		if l := t.limit; l != nil {
			*l = modelLimit{rate: l.rate, burst: l.burst, since: m.clock, first: l.tokens(was), changed: m.clock}
		}
	}
	m.setInvitationsBack(m.reset.back)
	for _, s := range m.schedules {
		st := s.State
		st.AnchorMs = min(st.AnchorMs, m.clock)
		if st.NextMs > m.clock || st.Unplanned {
			st.ChangedMs, st.NextMs, st.Unplanned = m.clock, 0, true
		}
	}
}

// setBack changes the next of the jobs that existed when the clock was set back.
func (m *model) setBack(most int) {
	if m.reset.ahead == 0 || m.reset.justNow {
		return
	}
	left := m.sorted(func(j *modelJob) bool { return j.Seq >= m.reset.next && j.Seq < m.reset.limit },
		func(a, b *modelJob) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, j := range left[:min(most, len(left))] {
		m.setJobBack(j)
		m.reset.next = j.Seq + 1
	}
	if len(left) <= most {
		m.reset = modelReset{epoch: m.reset.epoch}
	}
}

func (m *model) setJobBack(j *modelJob) {
	was := [...]int64{j.DueMs, j.ReservedUntilMs, j.DiedMs, j.EndedMs, j.RetainedUntilMs}
	defer func() {
		if was != [...]int64{j.DueMs, j.ReservedUntilMs, j.DiedMs, j.EndedMs, j.RetainedUntilMs} {
			j.Revision++
			if j.State == jobpb.State_STATE_READY {
				m.makeReady(j)
			}
		}
	}()
	if j.State == jobpb.State_STATE_DELAYED {
		if j.first.DueMs == 0 || j.DueMs != j.History[0].DueMs {
			j.DueMs = min(j.DueMs, m.clock+j.DelayMs)
		}
		return
	}
	j.DueMs = min(j.DueMs, m.clock)
	j.DiedMs = min(j.DiedMs, m.clock)
	if j.State == jobpb.State_STATE_RESERVED {
		j.ReservedUntilMs = max(j.ReservedUntilMs-m.reset.back, min(j.ReservedUntilMs, m.clock+j.TtrMs))
	}
	if j.EndedMs > m.clock {
		j.RetainedUntilMs = (j.RetainedUntilMs - j.EndedMs + m.clock + 999) / 1000 * 1000
		j.EndedMs = m.clock
	}
}

// resetOp sets the clock back, mostly by as much as it is ahead.
func (s *simulation) resetOp() *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: &jobpb.ResetClock{
		ToMs: s.model.clock - s.pick(-1, 0, 1, 30, 700, 5_000, 4_000_000), Epoch: s.model.reset.epoch - uint64(s.pick(0, 0, 0, 0, 1)),
	}}}
}
