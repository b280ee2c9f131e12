package job

import "tarry/job/jobpb"

// CheckSettings checks the settings of a topic; nil is none. The fields in errors
// are those of the HTTP API.
func (l *Limits) CheckSettings(s *jobpb.TopicSettings) error {
	if s == nil {
		return nil
	}
	maxTTRMS := int64(l.MaxTTR / 1e6)
	if s.TtrMs != nil && (*s.TtrMs < 1 || *s.TtrMs > maxTTRMS) {
		return Invalid("ttr", "is %g s; it must be between 0.001 and %d s", float64(*s.TtrMs)/1000, maxTTRMS/1000)
	}
	if s.ExpireMs < 0 || s.ExpireMs > l.MaxDelay.Milliseconds() {
		return Invalid("expire", "is %g s; it must be between 0 and %s s", float64(s.ExpireMs)/1000, plainSeconds(l.MaxDelay))
	}
	if s.Expiry < 0 || s.Expiry > jobpb.Expiry_EXPIRY_DEAD {
		return Invalid("expiry", "is %d; this release knows only 0 and 1", s.Expiry)
	}
	if s.LateFinish < 0 || s.LateFinish > jobpb.LateFinish_LATE_FINISH_REFUSE {
		return Invalid("late_finish", "is %d; this release knows only 0 and 1", s.LateFinish)
	}
	if s.SpreadMs < 0 || s.SpreadMs > l.MaxSpread.Milliseconds() {
		return Invalid("spread", "is %g s; it must be between 0 and %s s", float64(s.SpreadMs)/1000, plainSeconds(l.MaxSpread))
	}
	if s.RetainMs < 0 || s.RetainMs > l.MaxRetention.Milliseconds() {
		return Invalid("retain", "is %g s; it must be between 0 and %d s", float64(s.RetainMs)/1000, int64(l.MaxRetention.Seconds()))
	}
	if err := l.checkLimits(s); err != nil {
		return err
	}
	if err := l.checkPush(s.Push); err != nil {
		return err
	}
	return l.CheckBackoff(s.Backoff)
}

// checkLimits checks what holds back the jobs that are ready.
func (l *Limits) checkLimits(s *jobpb.TopicSettings) error {
	switch {
	case s.MaxReserved != nil && *s.MaxReserved < 1:
		return Invalid("max_reserved", "is 0; it must be at least 1 (pause the topic to hand out nothing)")
	case s.RateMilli > l.MaxRateMilli:
		return Invalid("rate", "is %g jobs a second; it must be between 0.001 and %d", float64(s.RateMilli)/1000, l.MaxRateMilli/1000)
	case s.Burst > l.MaxBurst:
		return Invalid("burst", "is %d; it must be between 1 and %d jobs", s.Burst, l.MaxBurst)
	case s.Burst > 0 && s.RateMilli == 0:
		return Invalid("burst", "is %d, but there is no rate for it; give both", s.Burst)
	}
	return nil
}
