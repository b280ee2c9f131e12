// Package tokenbucket bounds a rate. A Bucket may be overdrawn, and takes back what was not used at any
// later time; that of golang.org/x/time/rate cannot. Start at Bucket.
package tokenbucket

import (
	"sync"
	"time"
)

// Bucket fills with Rate tokens a second, up to Burst, which is at least one. It is not safe for
// concurrent use. A Rate of 0 is no limit.
type Bucket struct {
	Rate  float64
	Burst float64
	Left  float64 // negative: a debt, which is paid before anything else
	At    time.Time
}

// New returns a full bucket.
func New(rate, burst float64, at time.Time) Bucket {
	return Bucket{Rate: rate, Burst: burst, Left: burst, At: at}
}

// Fill adds what has come since the last call.
func (b *Bucket) Fill(at time.Time) {
	if d := at.Sub(b.At); d > 0 {
		b.Return(d.Seconds() * b.Rate)
		b.At = at
	}
}

// FillAt is Fill with a rate that may be new. Then the bucket is full, so that a debt by the old rate does
// not outlive it.
func (b *Bucket) FillAt(rate, burst float64, at time.Time) {
	if b.Rate != rate {
		*b = New(rate, burst, at)
		return
	}
	b.Fill(at)
}

// Return puts tokens back.
func (b *Bucket) Return(tokens float64) { b.Left = min(b.Burst, b.Left+tokens) }

// Rounding is what sums of fractions may be off by.
const Rounding = 1e-6

// Wait returns in how long a cost is allowed; 0: it is now. What costs more than Burst is allowed while
// the bucket is full. The bucket must be filled.
func (b *Bucket) Wait(cost float64) time.Duration {
	need := min(cost, b.Burst) - b.Left
	if b.Rate == 0 || cost <= 0 || need <= Rounding {
		return 0
	}
	return max(time.Duration(need/b.Rate*float64(time.Second)), 1)
}

// Take fills the bucket, and takes a token if there is one.
func (b *Bucket) Take(at time.Time) bool {
	if b.Fill(at); b.Left < 1 {
		return false
	}
	b.Left--
	return true
}

// Buckets are buckets by name, for at most most of them. They are safe for concurrent use.
type Buckets struct {
	rate, burst float64
	most        int

	mu sync.Mutex
	of map[string]*Bucket
}

// NewBuckets returns buckets that get a token in each time every.
func NewBuckets(burst float64, every time.Duration, most int) *Buckets {
	return &Buckets{rate: 1 / every.Seconds(), burst: burst, most: most, of: map[string]*Bucket{}}
}

// Take is Bucket.Take of a name.
func (b *Buckets) Take(name string, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[name]
	if one == nil {
		if len(b.of) >= b.most {
			b.forget(at)
		}
		full := New(b.rate, b.burst, at)
		one = &full
		b.of[name] = one
	}
	return one.Take(at)
}

// forget makes room: it drops those that are full again, and all if there are none.
func (b *Buckets) forget(at time.Time) {
	for name, one := range b.of {
		if one.Fill(at); one.Left >= one.Burst {
			delete(b.of, name)
		}
	}
	if len(b.of) >= b.most {
		clear(b.of)
	}
}
