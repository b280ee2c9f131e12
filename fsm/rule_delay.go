package fsm

import "math/bits"

// waitUntil is the list of a job that is to wait, and its due instant: dueMS, or
// delayMS from now when that is 0; and later by its share of the topic's spread
// when it has to wait at all, or is a scheduled run's.
func (x *tx) waitUntil(t *topic, seq uint64, dueMS, delayMS int64) (listKind, int64) {
	now := x.clock()
	if dueMS == 0 {
		dueMS = now + delayMS
	}
	if dueMS > now || x.planned {
		dueMS += spread(seq, t.settings.GetSpreadMs())
	}
	if dueMS <= now {
		return listReady, now
	}
	return listDelayed, dueMS
}

// spread is a job's share of a window: at least 0, less than the window. Seqs one
// after the other have shares that fill the window evenly, however many they are
// (multiples of the golden ratio do, by their fractions).
func spread(seq uint64, windowMS int64) int64 {
	const golden = 0x9e3779b97f4a7c15 // its fraction, in 64 bits
	share, _ := bits.Mul64(seq*golden, uint64(windowMS))
	return int64(share)
}
