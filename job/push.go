package job

import (
	"time"
	"unicode/utf8"

	"tarry/job/jobpb"
)

// Limits on push targets: how many topics may have one, the sizes of its settings, the time
// to respond, and the posts at once.
const (
	MaxPushTargets         = 1000
	MaxPushURLBytes        = 2000
	MinPushSecretBytes     = 16
	MaxPushSecretBytes     = 256
	SealedSecretBytes      = 36 // by how many a sealed secret is longer
	DefaultPushTimeout     = 10 * time.Second
	MinPushTimeout         = 100 * time.Millisecond
	MaxPushTimeout         = 5 * time.Minute
	DefaultPushConcurrency = 10
	MaxPushConcurrency     = 100
)

// checkPush checks a target. Package push parses the URL and checks whether the operator
// allows it.
func (l *Limits) checkPush(p *jobpb.PushTarget) error {
	switch {
	case p == nil:
	case p.Url == "" && !p.JobUrls, !l.isPushURL(p.Url):
		return Invalid("push.url", "has %d bytes; it takes 1 to %d, of UTF-8", len(p.Url), l.MaxPushURLBytes)
	case len(p.SealedSecret) > 0:
		if n := len(p.SealedSecret) - SealedSecretBytes; p.Secret != "" || n < l.MinPushSecretBytes || n > l.MaxPushSecretBytes {
			return Invalid("push.secret", "is sealed with %d bytes; it takes %d to %d, and no other secret", len(p.SealedSecret), l.MinPushSecretBytes+SealedSecretBytes, l.MaxPushSecretBytes+SealedSecretBytes)
		}
		return l.checkPushLimits(p)
	case len(p.Secret) < l.MinPushSecretBytes || len(p.Secret) > l.MaxPushSecretBytes || !utf8.ValidString(p.Secret):
		return Invalid("push.secret", "has %d bytes; it takes %d to %d, of UTF-8", len(p.Secret), l.MinPushSecretBytes, l.MaxPushSecretBytes)
	default:
		return l.checkPushLimits(p)
	}
	return nil
}

// checkPushLimits checks the numbers of a target.
func (l *Limits) checkPushLimits(p *jobpb.PushTarget) error {
	switch {
	case p.TimeoutMs != 0 && (p.TimeoutMs < int64(l.MinPushTimeout/1e6) || p.TimeoutMs > int64(l.MaxPushTimeout/1e6)):
		return Invalid("push.timeout", "is %g s; it must be between %g and %g s", float64(p.TimeoutMs)/1000, l.MinPushTimeout.Seconds(), l.MaxPushTimeout.Seconds())
	case p.Concurrency > l.MaxPushConcurrency:
		return Invalid("push.concurrency", "is %d; it must be between 1 and %d", p.Concurrency, l.MaxPushConcurrency)
	}
	return nil
}

func (l *Limits) isPushURL(url string) bool {
	return len(url) <= l.MaxPushURLBytes && utf8.ValidString(url)
}

// CheckPushURL checks the URL of a job. Whether the job's topic permits one is up to the
// state machine.
func (l *Limits) CheckPushURL(url string) error {
	if !l.isPushURL(url) {
		return Invalid("push_url", "has %d bytes; it takes up to %d, of UTF-8", len(url), l.MaxPushURLBytes)
	}
	return nil
}
