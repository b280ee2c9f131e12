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
