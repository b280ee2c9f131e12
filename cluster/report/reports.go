package report

import (
	"slices"
)

// Current returns how many members have the same keys as the leader.
func (k *Keyring) Current() (n int) {
	ours := k.GetRing()
	for _, node := range k.GetNodes() {
		if theirs := node.GetRing(); node.Error == "" && theirs.GetRevision() == ours.GetRevision() && slices.Equal(theirs.GetFingerprints(), ours.GetFingerprints()) {
			n++
		}
	}
	return n
}

// ScheduledBackups lists the backups that the cluster has made by itself, as its nodes see them.
type ScheduledBackups struct {
	Backups []*ScheduledBackup // the newest first
	Nodes   []*NodeBackups     // of all members
}

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
