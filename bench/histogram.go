package bench

import (
	"math/bits"
	"time"
)

// subBits sets the precision: every power of two is cut into 2^subBits buckets,
// so a value is known to about 1.6 percent.
const subBits = 6

// Histogram counts durations in microseconds, from 0 to longer than any run, in
// a fixed 30 KiB. The zero value is empty. It belongs to one goroutine.
type Histogram struct {
	buckets [(64 - subBits + 1) << subBits]uint64
	n       uint64
	max     time.Duration
}

// bucket maps a value to its bucket: the first 2^(subBits+1) values have one
// each, then buckets grow with the value.
func bucket(v uint64) int {
	shift := bits.Len64(v) - subBits - 1
	if shift <= 0 {
		return int(v)
	}
	return shift<<subBits + int(v>>shift)
}

// lowest is the smallest value of a bucket.
func lowest(b int) uint64 {
	shift := b>>subBits - 1
	if shift <= 0 {
		return uint64(b)
	}
	return (1<<subBits | uint64(b)&(1<<subBits-1)) << shift
}

// Record adds a duration; a negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	h.buckets[bucket(uint64(max(0, d.Microseconds())))]++
	h.n++
	h.max = max(h.max, d)
}

// Merge adds what another one counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Max is the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is the duration that a share q of the recorded ones, 0 < q <= 1, does
// not exceed. It is 0 when nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q*float64(h.n) + 0.999999)
	var seen uint64
	for b, n := range h.buckets {
		seen += n
		if n > 0 && seen >= rank {
			// The middle of the bucket, so that the error is even.
			middle := (lowest(b) + lowest(b+1)) / 2
			return min(time.Duration(middle)*time.Microsecond, h.max)
		}
	}
	return h.max
}
