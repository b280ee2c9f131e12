package fsm

import (
	"cmp"
	"fmt"
	"math"

	"tarry/job/jobpb"
)

func (m *model) giveBack(op *jobpb.Release, t *modelTopic, j *modelJob) {
	j.Revision++
	if op.Undelivered {
		m.undelivered(j, op.ReservedMs)
	}
	attempt := j.Attempts
	if op.Returned {
		m.returnJob(op, t, j)
	} else {
		m.release(op, t, j)
	}
	m.noteRelease(j, op, attempt)
}

func (m *model) release(op *jobpb.Release, t *modelTopic, j *modelJob) {
	if op.SetPriority {
		j.Priority = op.Priority
	}
	delay := op.DelayMs
	last := j.MaxAttempts != 0 && j.Attempts >= j.MaxAttempts
	if op.Undelivered {
		j.Attempts--
		j.Reserves--
		last = false
	} else {
		j.Releases++
	}
	if op.Backoff && delay == 0 && !last && !op.Undelivered {
		delay = m.backoff(j, m.version >= 2)
		if j.Options.GetBackoff() == nil && m.settings[j.Topic].GetBackoff() == nil { // all others have no jitter
			delay -= delay / 5 * int64(mix(op.Entropy^j.Seq)>>48) >> 16
		}
	}
	j.DelayMs = delay
	j.Reason = cmp.Or(op.Reason, j.Reason)
	j.LastError = cmp.Or(op.Reason, j.LastError)
	j.ReservedUntilMs = 0
	switch {
	case last:
		if op.Reason == "" {
			j.Reason = fmt.Sprintf("released on attempt %d of %d", j.Attempts, j.MaxAttempts)
		}
		m.die(t, j)
	case delay > 0:
		j.State = jobpb.State_STATE_DELAYED
		j.DueMs = m.after(delay)
	default:
		m.makeReady(j)
	}
}

func (m *model) returnJob(op *jobpb.Release, t *modelTopic, j *modelJob) {
	j.ReservedUntilMs = 0
	switch {
	case op.Undelivered:
		j.Attempts--
		j.Reserves--
		m.makeReady(j)
	case j.MaxAttempts != 0 && j.Attempts >= j.MaxAttempts:
		j.Reason = fmt.Sprintf("the consumer's connection ended on attempt %d of %d", j.Attempts, j.MaxAttempts)
		m.die(t, j)
	default:
		m.makeReady(j)
	}
}

// backoff returns a job's wait after a failed attempt, without jitter.
func (m *model) backoff(j *modelJob, byDefault bool) int64 {
	b := j.Options.GetBackoff()
	if b == nil {
		b = m.settings[j.Topic].GetBackoff()
	}
	switch n := int(j.Attempts); {
	case b == nil && byDefault:
		return min(int64(1000)<<min(max(n, 1)-1, 12), 3600_000)
	case b == nil:
		return 0
	case n <= len(b.DelaysMs):
		return b.DelaysMs[max(n, 1)-1]
	case len(b.DelaysMs) > 0:
		return b.DelaysMs[len(b.DelaysMs)-1]
	default:
		wait := float64(b.BaseMs) * math.Pow(float64(b.FactorPermille)/1000, float64(max(n, 1)-1))
		return int64(min(wait, float64(b.MaxMs)))
	}
}

func init() {
	modelOps["release_topic"] = modelOp{
		apply: func(m *model, op *jobpb.Op, r *jobpb.Result) { m.releaseTopic(op.GetReleaseTopic(), r) },
		some: func(s *simulation) *jobpb.Op {
			return &jobpb.Op{Kind: &jobpb.Op_ReleaseTopic{ReleaseTopic: &jobpb.ReleaseTopic{
				Topic: s.topic(), Consumer: s.consumer(), Reason: []string{"", "gone"}[s.rng.IntN(2)],
				Max: uint32(s.pick(0, 1, 3, 100, 10_001)), Sweep: s.sweep(),
			}}}
		},
	}
}

func (m *model) releaseTopic(op *jobpb.ReleaseTopic, r *jobpb.Result) {
	t := m.topics[op.Topic]
	switch {
	case op.Max == 0 || op.Max > 10_000 || badSweep(m, op.Sweep) || len(op.Consumer) > 64:
		r.Code = jobpb.Code_INVALID
	case t == nil:
	case m.settings[op.Topic].GetRequireToken():
		r.Code = jobpb.Code_TOKEN_REQUIRED
	default:
		held := func(j *modelJob) bool { return op.Consumer == "" || j.ReservedBy == op.Consumer }
		m.sweep(op.Topic, jobpb.State_STATE_RESERVED, op.Max, op.Sweep, r, held, func(j *modelJob, _ int64, _ uint64) {
			m.giveBack(&jobpb.Release{Reason: op.Reason}, t, j)
		})
	}
}
