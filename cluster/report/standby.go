package report

// LagEntries is the number of entries of the primary's log that the standby is known to lack.
func (s *Standby) LagEntries() uint64 {
	return s.GetPrimaryIndex() - min(s.GetPrimaryIndex(), s.GetIndex())
}

// LagSeconds is for how long entries of the primary may be missing: what was acknowledged
// before that is here. -1: unknown.
func (s *Standby) LagSeconds() float64 {
	if s.GetCaughtUpMs() == 0 {
		return -1
	}
	return float64(max(0, s.NowMs-s.CaughtUpMs)) / 1000
}
