package job

import (
	"unicode/utf8"

	"tarry/job/jobpb"
)

// CheckJobOptions checks a job's options. The fields in errors are those of the HTTP API.
func (l *Limits) CheckJobOptions(o *jobpb.JobOptions) error {
	if err := l.CheckBackoff(o.GetBackoff()); err != nil {
		return err
	}
	if err := CheckExpires(o.GetExpiresMs()); err != nil {
		return err
	}
	if err := l.CheckPushURL(o.GetPushUrl()); err != nil {
		return err
	}
	return l.CheckHeaders(o.GetHeaders())
}

// CheckExpires leaves the rules that need the clock to the API.
func CheckExpires(ms int64) error {
	if ms < 0 {
		return Invalid("expires_at", "is before 1970")
	}
	return nil
}

// CheckBackoff checks a backoff; nil is none.
func (l *Limits) CheckBackoff(b *jobpb.Backoff) error {
	if b == nil {
		return nil
	}
	listed := len(b.DelaysMs) > 0
	switch {
	case len(b.DelaysMs) > l.MaxBackoffDelays:
		return Invalid("backoff", "has %d delays; the limit is %d", len(b.DelaysMs), l.MaxBackoffDelays)
	case b.JitterPercent > 100:
		return Invalid("backoff.jitter", "is %g; it must be between 0 and 1", float64(b.JitterPercent)/100)
	case listed && (b.BaseMs != 0 || b.FactorPermille != 0 || b.MaxMs != 0):
		return Invalid("backoff", "has both delays and base; give one")
	case !listed && b.BaseMs == 0:
		return Invalid("backoff", "has neither delays nor base; give one")
	case !listed && (b.FactorPermille < 1000 || b.FactorPermille > l.MaxBackoffFactor):
		return Invalid("backoff.factor", "is %g; it must be between 1 and %d", float64(b.FactorPermille)/1000, l.MaxBackoffFactor/1000)
	case !listed && b.MaxMs < b.BaseMs:
		return Invalid("backoff.max", "is %g s, less than its base of %g s", float64(b.MaxMs)/1000, float64(b.BaseMs)/1000)
	}
	for _, ms := range b.DelaysMs {
		if err := WithinSeconds("backoff.delays", ms, 0, l.MaxDelay); err != nil {
			return err
		}
	}
	if err := WithinSeconds("backoff.base", b.BaseMs, 0, l.MaxDelay); err != nil {
		return err
	}
	return WithinSeconds("backoff.max", b.MaxMs, 0, l.MaxDelay)
}

func (l *Limits) CheckHeaders(list []*jobpb.Header) error {
	if len(list) > l.MaxHeaders {
		return Invalid("headers", "has %d names; the limit is %d", len(list), l.MaxHeaders)
	}
	size := 0
	for i, h := range list {
		if err := l.checkName("a name in headers", h.Name); err != nil {
			return Errorf(CodeInvalid, "%w", err).In("headers")
		}
		if i > 0 && list[i-1].Name >= h.Name {
			return Invalid("headers", "has %.40q twice or out of order", h.Name)
		}
		if !utf8.ValidString(h.Value) {
			return Invalid("headers", "has a value for %.40q that is not valid UTF-8", h.Name)
		}
		if size += len(h.Name) + len(h.Value); size > l.MaxHeaderBytes {
			return Invalid("headers", "has more than %d bytes, which is the limit", l.MaxHeaderBytes)
		}
	}
	return nil
}
