package api

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// pushRequest is the push target of a topic in a request.
type pushRequest struct {
	URL         opt[string]  `json:"url"`
	Secret      opt[string]  `json:"secret"`
	Timeout     opt[float64] `json:"timeout"`
	Concurrency opt[int64]   `json:"concurrency"`
}

// applyPush changes the target in settings. Responses never show the secret, nor the
// values in the query of the URL. So a change may omit the secret and repeat the URL as
// shown, and both keep their values. A change to another server must set the secret:
// otherwise anyone who may change settings could send posts with the old signature to
// another server.
func (s *server) applyPush(m patchField[pushRequest], to *jobpb.TopicSettings) error {
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
	return nil
}

// push adds a target to the response, without its secrets.
func (w *writer) push(p *jobpb.PushTarget) {
	if p == nil {
		return
	}
	w.beginNamedObject("push")
	w.text("url", shownURL(p.Url))
	w.boolean("has_secret", p.Secret != "")
	if p.TimeoutMs != 0 {
		w.seconds("timeout", p.TimeoutMs)
	}
	w.numberUnlessZero("concurrency", uint64(p.Concurrency))
	w.endObject()
}
