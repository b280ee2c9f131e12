package fsm

import (
	"math"

	"tarry/job/jobpb"
)

// expiry returns when a waiting job expires; 0: never.
func (m *model) expiry(j *modelJob) int64 {
	at := j.expiresOwn
	if after := m.settings[j.Topic].GetExpireMs(); after > 0 && (at == 0 || j.DueMs+after < at) {
		at = j.DueMs + after
	}
	return at
}

func (m *model) expired(j *modelJob) bool {
	waits := j.State == jobpb.State_STATE_READY || j.State == jobpb.State_STATE_DELAYED
	return waits && m.expiry(j) != 0 && m.expiry(j) <= m.clock
}

func (m *model) expire(j *modelJob) {
	t := m.topics[j.Topic]
	t.Expired++
	if m.settings[j.Topic].GetExpiry() == jobpb.Expiry_EXPIRY_DROP {
		j.expiring = true
		m.end(j, jobpb.State_STATE_DELETED)
		return
	}
	j.DueMs = min(j.DueMs, m.clock)
	j.Reason = "expired"
	j.Revision++
	m.die(t, j)
	m.note(j, jobpb.Event_EXPIRED, j.Attempts, "")
}

// restartExpiry restarts the time of a dead job that comes back, in that topic.
func (m *model) restartExpiry(j *modelJob, topic string) {
	if j.expiresOwn <= m.clock {
		j.expiresOwn = 0
	}
	if m.settings[topic].GetExpireMs() > 0 {
		j.DueMs = m.clock
	}
}

var lastPlace = &jobpb.Place{Priority: math.MaxUint32, Instant: math.MaxInt64, Seq: math.MaxUint64}

// makeReady makes a job ready. If it is the only one, either all that follow it are
// covered, or none.
func (m *model) makeReady(j *modelJob) {
	j.State = jobpb.State_STATE_READY
	for _, other := range m.jobs {
		if other != j && other.Topic == j.Topic && other.State == j.State {
			return
		}
	}
	t := m.topics[j.Topic]
	t.covered = nil
	if m.settings[j.Topic].GetExpireMs() > 0 {
		t.covered = lastPlace
	}
}

// covers reports whether a ready job expires by an Advance, and not only at a Reserve.
func (m *model) covers(j *modelJob) bool {
	return comparePlaces(j.place(), m.topics[j.Topic].covered) <= 0
}

// uncovered returns the ready jobs of a topic that must be covered yet.
func (m *model) uncovered(t *modelTopic) []*modelJob {
	if m.settings[t.Name].GetExpireMs() == 0 {
		return nil
	}
	return m.sorted(func(j *modelJob) bool {
		return j.Topic == t.Name && j.State == jobpb.State_STATE_READY && !m.covers(j)
	}, comparePlaced)
}

func (m *model) cover(t *modelTopic, most int) int {
	jobs := m.uncovered(t)
	n := min(len(jobs), most)
	if n > 0 {
		t.covered = jobs[n-1].place()
	}
	if n == len(jobs) {
		t.covered = lastPlace
	}
	return n
}
