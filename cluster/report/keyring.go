package report

import "slices"

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
