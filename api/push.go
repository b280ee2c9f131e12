package api

import (
	"net/url"
	"strings"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// applyPush changes the target in settings. Responses never show the secret, nor the
// values in the query of the URL. So a change may omit the secret and repeat the URL as
// shown, and both keep their values. A change to another server, or one that permits URLs
// of jobs, must set the secret: otherwise anyone who may change settings could send posts
// with the old signature to another server.
func (s *server) applyPush(m wire.PatchField[wire.PushRequest], to *jobpb.TopicSettings) error {
	if !m.Set {
		if m.Given {
			to.Push = nil
		}
		return nil
	}
	q, p, old := m.V, &jobpb.PushTarget{Url: m.V.URL.V, Secret: m.V.Secret.V, JobUrls: m.V.JobURLs.V}, to.Push
	switch {
	case p.Url == "" && !p.JobUrls:
		return job.Invalid("push.url", "is missing; only a push with job_urls can do without")
	case old != nil && p.Url == shownURL(old.Url):
		p.Url = old.Url
	case hidesValue(p.Url):
		return job.Invalid("push.url", "has %s in its query, which stands for a value that is not shown; give the value", hiddenValue)
	}
	if err := s.checkPush("push.url", p.Url); err != nil {
		return err
	}
	if old != nil && !q.Secret.Set {
		switch {
		case p.Url != "" && !sameServer(old.Url, p.Url):
			return job.Invalid("push.secret", "is missing: push.url leads to another server than before, and the secret of that one is not kept for it")
		case p.JobUrls && !old.JobUrls:
			return job.Invalid("push.secret", "is missing: push.job_urls lets posts go to other servers than before, and the secret is not kept for those")
		}
		p.Secret, p.SealedSecret = old.Secret, old.SealedSecret
	}
	if q.Timeout.Set {
		p.TimeoutMs = job.MillisOf(q.Timeout.V)
		// Zero, which stands for the default in the state, is refused, too.
		if p.TimeoutMs < job.MinPushTimeout.Milliseconds() || p.TimeoutMs > job.MaxPushTimeout.Milliseconds() {
			return job.Invalid("push.timeout", "is %g s; it must be between %g and %g s", q.Timeout.V, job.MinPushTimeout.Seconds(), job.MaxPushTimeout.Seconds())
		}
	}
	if q.Concurrency.Set {
		var err error
		if p.Concurrency, err = wire.Within("push.concurrency", q.Concurrency.V, job.MaxPushConcurrency); err != nil {
			return err
		}
	}
	to.Push = p
	return nil
}

// checkPush checks a URL to which this node may have to post.
func (s *server) checkPush(field, target string) error {
	if s.CheckPush == nil {
		return job.Invalid(field, "cannot be used: push is off on this node")
	}
	return s.CheckPush(field, target)
}

// pushURL returns the URL of a job in a request, checked. remove: it may be empty.
func (s *server) pushURL(q wire.Opt[string], remove bool) (string, error) {
	if q.V == "" {
		if q.Set && !remove {
			return "", job.Invalid("push_url", "is empty; leave it out for the URL of the topic")
		}
		return "", nil
	}
	return q.V, s.checkPush("push_url", q.V)
}

// push adds a target to the response, without its secrets.
func (w *writer) push(p *jobpb.PushTarget) {
	if p == nil {
		return
	}
	w.beginNamedObject("push")
	if p.Url != "" {
		w.text("url", shownURL(p.Url))
	}
	w.boolean("has_secret", p.Secret != "" || len(p.SealedSecret) > 0)
	if p.TimeoutMs != 0 {
		w.seconds("timeout", p.TimeoutMs)
	}
	w.numberUnlessZero("concurrency", uint64(p.Concurrency))
	w.booleanIfTrue("job_urls", p.JobUrls)
	w.endObject()
}

// pushURL adds the URL of a job, if it has one. It is shown in full, like the rest of the
// job: exports must have it.
func (w *writer) pushURL(o *jobpb.JobOptions) {
	if url := o.GetPushUrl(); url != "" {
		w.text("push_url", url)
	}
}

// hiddenValue stands for a part of a URL that is not shown.
const hiddenValue = "***"

// shownURL is the URL of a target as clients see it: without the values of its
// query, which often are keys.
func shownURL(target string) string {
	path, query, found := strings.Cut(target, "?")
	if !found || query == "" {
		return target
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, hasValue := strings.Cut(part, "=")
		switch {
		case hasValue:
			parts[i] = name + "=" + hiddenValue
		case part != "":
			parts[i] = hiddenValue
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// hidesValue reports whether a URL has the mark of a value that was not shown.
func hidesValue(target string) bool {
	_, query, _ := strings.Cut(target, "?")
	return strings.Contains(query, hiddenValue)
}

// sameServer reports whether two URLs lead to one server in one way: they have the
// scheme, the host and the port in common.
func sameServer(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Hostname(), v.Hostname()) && portOf(u) == portOf(v)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}
