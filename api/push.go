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
// shown, nor are the values in the query of the URL. So a target that is changed may
// leave the secret out, and name its URL as it is shown, and keeps those it has. But
// the secret of one server is not kept for another: whoever may change a setting
// could learn from its own server what signs the posts to the other.
func (s *server) applyPush(m member[pushRequest], to *jobpb.TopicSettings) error {
	if !m.set {
		if m.given {
			to.Push = nil
		}
		return nil
	}
	q, p, old := m.v, &jobpb.PushTarget{Url: m.v.URL.v, Secret: m.v.Secret.v}, to.Push
	switch {
	case p.Url == "":
		return job.Invalid("push.url", "is missing")
	case old != nil && p.Url == shownURL(old.Url):
		p.Url = old.Url
	case hidesValue(p.Url):
		return job.Invalid("push.url", "has %s in its query, which stands for a value that is not shown; give the value", hiddenValue)
	}
	if s.CheckPush == nil {
		return job.Invalid("push", "is off on this node")
	}
	if err := s.CheckPush(p.Url); err != nil {
		return err
	}
	if old != nil && !q.Secret.set {
		if !sameServer(old.Url, p.Url) {
			return job.Invalid("push.secret", "is missing: push.url leads to another server than before, and the secret of that one is not kept for it")
		}
		p.Secret = old.Secret
	}
	if q.Timeout.set {
		var err error
		if p.TimeoutMs, err = job.Millis("push.timeout", q.Timeout.v, job.MaxPushTimeout); err != nil {
			return err
		}
		if p.TimeoutMs == 0 { // it stands for the default
			return job.Invalid("push.timeout", "is 0 s; it must be between %g and %g s", job.MinPushTimeout.Seconds(), job.MaxPushTimeout.Seconds())
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

// push adds a target without its secrets.
func (w *writer) push(p *jobpb.PushTarget) {
	if p == nil {
		return
	}
	w.openObject("push")
	w.text("url", shownURL(p.Url))
	w.boolean("has_secret", p.Secret != "")
	if p.TimeoutMs != 0 {
		w.seconds("timeout", p.TimeoutMs)
	}
	if p.Concurrency != 0 {
		w.number("concurrency", uint64(p.Concurrency))
	}
	w.shut()
}
