package fsm

import (
	"strings"

	"tarry/job/jobpb"
)

// targets returns how many topics have a push target.
func (m *model) targets() (n int) {
	for _, s := range m.settings {
		if s.Push != nil {
			n++
		}
	}
	return n
}

// pushTarget returns a target, mostly a valid one.
func (s *simulation) pushTarget() *jobpb.PushTarget {
	if s.rng.IntN(3) > 0 {
		return &jobpb.PushTarget{
			Url: strings.Repeat("u", int(s.pick(0, 1, 1, 1))), Secret: strings.Repeat("s", 16), Concurrency: uint32(s.pick(1, 2)),
			JobUrls: s.rng.IntN(4) > 0,
		}
	}
	return &jobpb.PushTarget{
		Url:         strings.Repeat("u", int(s.pick(0, 1, 20, 2000, 2001))),
		Secret:      strings.Repeat("s", int(s.pick(15, 16, 32, 256, 257))),
		TimeoutMs:   s.pick(-1, 0, 0, 99, 100, 5000, 300_000, 300_001),
		Concurrency: uint32(s.pick(0, 1, 100, 101)),
	}
}

func badPush(p *jobpb.PushTarget) bool {
	if p == nil {
		return false
	}
	return p.Url == "" && !p.JobUrls || len(p.Url) > 2000 || len(p.Secret) < 16 || len(p.Secret) > 256 ||
		p.TimeoutMs < 0 || p.TimeoutMs > 0 && p.TimeoutMs < 100 || p.TimeoutMs > 300_000 || p.Concurrency > 100
}

// mayPush reports whether a topic accepts a job with that URL, or with none.
func (m *model) mayPush(topic, url string) bool {
	p := m.settings[topic].GetPush()
	if url != "" {
		return p != nil && p.JobUrls
	}
	return p == nil || p.Url != ""
}

// mayPushAll reports whether a topic accepts all jobs of another that have not ended.
func (m *model) mayPushAll(from, to string) bool {
	for _, j := range m.jobs {
		if from != to && j.Topic == from && !j.ended() && !m.mayPush(to, j.Options.GetPushUrl()) {
			return false
		}
	}
	return true
}

// pushURL returns the URL of a job, mostly none.
func (s *simulation) pushURL() string {
	if s.rng.IntN(4) > 0 {
		return ""
	}
	return strings.Repeat("j", int(s.pick(0, 1, 1, 1, 5, 2000, 2001)))
}
