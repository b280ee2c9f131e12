package api

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// pushRequest is where the jobs of a topic are posted to.
type pushRequest struct {
	URL         opt[string]  `json:"url"`
	Secret      opt[string]  `json:"secret"`
	Timeout     opt[float64] `json:"timeout"`
	Concurrency opt[int64]   `json:"concurrency"`
}

type pushMember struct {
	Push member[pushRequest] `json:"push"`
}

// applyPush changes the target in settings as a request says. The secret is never
// shown, so a target that is changed may leave it out and keeps the one it has.
func (s *server) applyPush(m member[pushRequest], to *jobpb.TopicSettings) error {
	if !m.set {
		if m.given {
			to.Push = nil
		}
		return nil
	}
	q, p := m.v, &jobpb.PushTarget{Url: m.v.URL.v, Secret: m.v.Secret.or(to.Push.GetSecret())}
	if p.Url == "" {
		return job.Errorf(job.CodeInvalid, "push.url is missing")
	}
	if s.CheckPush == nil {
		return job.Errorf(job.CodeInvalid, "push is off on this node")
	}
	if err := s.CheckPush(p.Url); err != nil {
		return err
	}
	if q.Timeout.set {
		var err error
		if p.TimeoutMs, err = job.Millis("push.timeout", q.Timeout.v, job.MaxPushTimeout); err != nil {
			return err
		}
		if p.TimeoutMs == 0 { // it stands for the default
			return job.Errorf(job.CodeInvalid, "push.timeout is 0 s; it must be between %g and %g s", job.MinPushTimeout.Seconds(), job.MaxPushTimeout.Seconds())
		}
	}
	if q.Concurrency.set {
		var err error
		if p.Concurrency, err = within("push.concurrency", q.Concurrency.v, job.MaxPushConcurrency); err != nil {
			return err
		}
	}
	to.Push = p
	return job.CheckSettings(to)
}

// push adds a target without its secret.
func (w *writer) push(p *jobpb.PushTarget) {
	if p == nil {
		return
	}
	w.openObject("push")
	w.text("url", p.Url)
	w.boolean("has_secret", p.Secret != "")
	if p.TimeoutMs != 0 {
		w.seconds("timeout", p.TimeoutMs)
	}
	if p.Concurrency != 0 {
		w.number("concurrency", uint64(p.Concurrency))
	}
	w.shut()
}
