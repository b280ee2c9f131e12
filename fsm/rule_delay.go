package fsm

import (
	"math/bits"

	"tarry/fsm/internal/record"
)

// waitUntil returns the list and the due instant of a job that waits until DueMS, or for
// DelayMS if DueMS is 0. The topic's spread is added if the job has to wait at all, or is
// of a scheduled run.
func (x *tx) waitUntil(t *topic, seq uint64, dueMS, delayMS, expiresMS int64) (record.List, int64) {
	now := x.clock()
	if dueMS == 0 {
		dueMS = x.after(delayMS)
	}
	if dueMS > now || x.planned {
		later := dueMS + spread(seq, t.settings.GetSpreadMs())
		if expiresMS == 0 || later < expiresMS { // the spread lets no job expire
			dueMS = later
		}
	}
	if dueMS <= now {
		return record.ListReady, now
	}
	return record.ListDelayed, dueMS
}

// spread returns an offset in [0, windowMS). The offsets of consecutive seqs fill the
// window evenly, however many they are, as the fractions of multiples of the golden ratio
// do.
func spread(seq uint64, windowMS int64) int64 {
	const golden = 0x9e3779b97f4a7c15 // its fraction, in 64 bits
	share, _ := bits.Mul64(seq*golden, uint64(windowMS))
	return int64(share)
}
