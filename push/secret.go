package push

import (
	"maps"
	"slices"

	"tarry/cluster/report"
	"tarry/job/jobpb"
)

// opened returns a topic's target with its secret in plain. Without that nothing is posted: an
// unsigned post, or one that is signed with something else, is not what its receiver trusts.
func (p *Pusher) opened(topic string, t *jobpb.PushTarget) (*jobpb.PushTarget, error) {
	if len(t.SealedSecret) == 0 {
		return t, nil
	}
	secret, err := p.secrets.Open(topic, t.SealedSecret)
	if err != nil {
		return nil, err
	}
	return &jobpb.PushTarget{Url: t.Url, Secret: secret, TimeoutMs: t.TimeoutMs, Concurrency: t.Concurrency, JobUrls: t.JobUrls}, nil
}

// setSealed remembers which topics have sealed secrets, for Problems.
func (p *Pusher) setSealed(settings map[string]*jobpb.TopicSettings) {
	sealed := map[string][]byte{}
	for topic, s := range settings {
		if s.Push.SealedSecret != nil {
			sealed[topic] = s.Push.SealedSecret
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sealed = sealed
}

// Problems returns what operators should know: that this node posts for topics whose secrets it
// cannot open. It does not block.
func (p *Pusher) Problems() []*report.Problem {
	p.mu.Lock()
	sealed := p.sealed
	p.mu.Unlock()
	failed, first, why := 0, "", error(nil)
	for _, topic := range slices.Sorted(maps.Keys(sealed)) {
		if _, err := p.secrets.Open(topic, sealed[topic]); err != nil {
			if failed++; failed == 1 {
				first, why = topic, err
			}
		}
	}
	if failed == 0 {
		return nil
	}
	return []*report.Problem{report.NewProblem(report.PushSecrets, "", "the leader posts no jobs of %d topics, because it cannot open their push secrets; the first is %q: %v", failed, first, why)}
}
