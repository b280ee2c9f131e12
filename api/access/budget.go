package access

import "time"

// budget is what a token may use over time. It fills with limit units a second, up to most, which
// is at least one unit. What costs more than that is allowed while it is full, and leaves a debt
// that is paid before anything else. A limit of 0 is none. The zero value is full.
type budget struct {
	limit float64
	most  float64
	left  float64 // negative: a debt
	last  time.Time
}

// fill adds what has come since the last call. A budget whose limit has changed is full, so that a
// debt by the old limit does not outlive it.
func (b *budget) fill(limit, most float64, at time.Time) {
	if b.limit != limit {
		*b = budget{limit: limit, most: most, left: most, last: at}
		return
	}
	if d := at.Sub(b.last); d > 0 {
		b.left = min(most, b.left+d.Seconds()*limit)
		b.last = at
	}
}

// rounding is what sums of fractions may be off by.
const rounding = 1e-6

// lacks returns in how long a cost is allowed; 0: it is now. The budget must be filled.
func (b *budget) lacks(cost float64) time.Duration {
	need := min(cost, b.most) - b.left
	if b.limit == 0 || cost <= 0 || need <= rounding {
		return 0
	}
	return max(time.Duration(need/b.limit*float64(time.Second)), 1)
}
