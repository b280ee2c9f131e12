package fsm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tarry/job/jobpb"
)

// modelLimit is the limits of a topic. Instead of a bucket it has everything that was
// handed out since the rate came into force.
type modelLimit struct {
	rate, burst int64 // thousandths of a job a second; jobs
	since       int64
	first       int64 // millionths of a job that there were then
	gains       []modelGain
	changed     int64 // the topic's last change, as of which tokens count
}

type modelGain struct{ at, millionths int64 }

// badLimits reports whether limits that limitSettings makes are invalid.
func badLimits(s *jobpb.TopicSettings) bool {
	return s.MaxReserved != nil && *s.MaxReserved < 1 || s.RateMilli > 1_000_000_000 || s.Burst > 0 && s.RateMilli == 0
}

// limitSettings sometimes sets limits.
func (s *simulation) limitSettings(to *jobpb.TopicSettings) {
	if s.rng.IntN(3) == 0 {
		to.MaxReserved = new(uint64(s.pick(0, 1, 1, 2, 5)))
	}
	if s.rng.IntN(2) == 0 {
		to.RateMilli = uint64(s.pick(0, 1, 700, 3000, 20_000, 1_000_000, 1_000_000_000, 1_000_000_001))
		to.Burst = uint32(s.pick(0, 0, 1, 2, 7, 1_000_000))
	}
}

// tokens returns how many millionths of a job could be handed out at an instant.
func (l *modelLimit) tokens(at int64) int64 {
	have, last := l.first, l.since
	for _, g := range append(slices.Clone(l.gains), modelGain{at, 0}) {
		have = min(have+l.rate*(g.at-last), l.burst*1_000_000) + g.millionths
		last = g.at
	}
	return have
}

// when returns the first instant with that many tokens.
func (l *modelLimit) when(millionths int64) int64 {
	at := l.changed
	for l.tokens(at) < millionths {
		at += max((millionths-l.tokens(at))/l.rate, 1)
	}
	return at
}

// relimit puts settings into force in a topic that exists.
func (m *model) relimit(t *modelTopic) {
	s := m.settings[t.Name]
	rate, burst := int64(s.GetRateMilli()), int64(s.GetBurst())
	if burst == 0 {
		burst = (rate + 999) / 1000
	}
	switch l := t.limit; {
	case rate == 0:
		t.limit = nil
	case l == nil:
		t.limit = &modelLimit{rate: rate, burst: burst, since: m.clock, first: burst * 1_000_000, changed: m.clock}
	case rate != l.rate || burst != l.burst:
		t.limit = &modelLimit{rate: rate, burst: burst, since: m.clock, first: min(l.tokens(m.clock), burst*1_000_000), changed: m.clock}
	}
}

// slots returns how many more jobs of a topic may be reserved, at most most.
func (m *model) slots(topic string, most int) int {
	if s := m.settings[topic]; s != nil && s.MaxReserved != nil {
		held := m.sorted(func(j *modelJob) bool { return j.Topic == topic && j.State == jobpb.State_STATE_RESERVED },
			func(a, b *modelJob) int { return 0 })
		most = min(most, max(int(*s.MaxReserved)-len(held), 0))
	}
	return most
}

// mayHandOut reports whether a topic's limits allow another job.
func (m *model) mayHandOut(topic string) bool {
	l := m.topics[topic].limit
	return m.slots(topic, 1) > 0 && (l == nil || l.tokens(m.clock) >= 1_000_000)
}

// gain adds tokens to a topic.
func (m *model) gain(topic string, millionths int64) {
	if l := m.topics[topic].limit; l != nil {
		l.gains = append(l.gains, modelGain{m.clock, millionths})
	}
}

// undelivered gives a token back, less what was gained since.
func (m *model) undelivered(j *modelJob, handedOut int64) {
	l := m.topics[j.Topic].limit
	if l != nil && handedOut > l.since && handedOut <= m.clock {
		m.gain(j.Topic, max(1_000_000-l.rate*(m.clock-handedOut), 0))
	}
}

// nextToken returns when an Advance must make another job available; 0: none waits.
func (m *model) nextToken(t *modelTopic) int64 {
	if m.readyIn(t.Name) > 0 && m.slots(t.Name, 1) > 0 {
		return m.throttledUntil(t)
	}
	return 0
}

// throttledUntil returns when the rate allows another job; 0: it did when the topic last
// changed.
func (m *model) throttledUntil(t *modelTopic) int64 {
	if l := t.limit; l != nil && l.tokens(l.changed) < 1_000_000 {
		return l.when(1_000_000)
	}
	return 0
}

func (m *model) readyIn(topic string) int {
	return len(m.sorted(func(j *modelJob) bool { return j.Topic == topic && j.State == jobpb.State_STATE_READY },
		func(a, b *modelJob) int { return 0 }))
}

// available is TopicChange.Ready.
func (m *model) available(t *modelTopic) uint64 {
	if t.PausedUntilMs != 0 {
		return 0
	}
	n := m.slots(t.Name, m.readyIn(t.Name))
	if l := t.limit; l != nil {
		n = min(n, int(l.tokens(l.changed)/1_000_000))
	}
	return uint64(n)
}

// look describes what an operation can change of each topic with a rate.
func (m *model) look() map[string]string {
	looks := map[string]string{}
	for name, t := range m.topics {
		if t.limit == nil {
			continue
		}
		var b strings.Builder
		fmt.Fprint(&b, t.limit.since, t.Pauses, t.PausedUntilMs, m.settings[name].GetRevision())
		for _, seq := range slices.Sorted(maps.Keys(m.jobs)) {
			if j := m.jobs[seq]; j.Topic == name {
				fmt.Fprint(&b, " ", seq, j.State, j.Revision)
			}
		}
		looks[name] = b.String()
	}
	return looks
}

// notice marks the topics that an operation has changed.
func (m *model) notice(before map[string]string) {
	for name, now := range m.look() {
		if then, known := before[name]; !known || then != now {
			m.topics[name].limit.changed = m.clock
		}
	}
}

func (l *modelLimit) clone() *modelLimit {
	if l == nil {
		return nil
	}
	c := *l
	c.gains = slices.Clone(l.gains)
	return &c
}
