package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// backoff returns how long a job waits after a failed attempt, in milliseconds. other is the
// backoff of a job that has none, in a topic that has none; nil: it does not wait. entropy is in
// the command, so all nodes compute the same jitter.
func (x *tx) backoff(t *topic, rec *record.Job, entropy uint64, other *jobpb.Backoff) (int64, error) {
	e, err := rec.Spec.DecodeOptions()
	if err != nil {
		return 0, err
	}
	b := e.GetBackoff()
	if b == nil {
		b = t.settings.GetBackoff()
	}
	if b == nil {
		b = other
	}
	if b == nil {
		return 0, nil
	}
	wait := backoffWait(b, rec.Status.Attempts)
	off := wait * int64(b.JitterPercent) / 100
	// 16 bits of randomness: a wait has 40 bits, so the product has 56.
	return wait - off*int64(mix(entropy^rec.Seq)>>48)>>16, nil
}

// backoffWait returns the wait after an attempt, without jitter. Attempts count from 1.
func backoffWait(b *jobpb.Backoff, attempt uint32) int64 {
	attempt = max(attempt, 1)
	if n := uint32(len(b.DelaysMs)); n > 0 {
		return b.DelaysMs[min(attempt, n)-1]
	}
	wait := b.BaseMs
	for range attempt - 1 {
		next := wait * int64(b.FactorPermille) / 1000
		if next >= b.MaxMs {
			return b.MaxMs
		}
		if next == wait {
			break // rounded down to no growth
		}
		wait = next
	}
	return wait
}

// mix spreads the bits of a number over all of it (the finalizer of SplitMix64,
// by Steele, Lea and Flood).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
