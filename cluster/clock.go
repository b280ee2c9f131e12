package cluster

import (
	"sync"
	"time"
)

// clock is the shard's clock on a leader: the wall clock, except that it never
// stands still and never goes back. Without that, a wall clock that is set back,
// or a state machine that an earlier leader's fast clock has taken ahead, would
// stop the time of the queue; and when the wall clock has caught up, all that
// time would pass at once, and reservations and delays would end early.
//
// So a clock that is ahead of the wall clock goes on at the pace of the monotonic
// clock. Only when it stays ahead for long is the wall clock right and we are
// not; then it goes slower until the two meet. Late is safe, early is not.
type clock struct {
	mu    sync.Mutex
	last  time.Duration // what was told last, since the Unix epoch
	at    time.Time     // when, with its monotonic reading
	ahead time.Time     // since when it has been ahead of the wall clock; zero: it is not
}

const (
	// aheadFor is how long the clock may be ahead before it goes slower.
	aheadFor = time.Minute
	// slower is the part of its pace that it loses then: an hour is made good
	// in eight.
	slower = 8
)

// begin forgets an earlier leadership: what this node's clock was then says nothing
// of the time now. The state machine's clock remembers what counts.
func (c *clock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.at, c.ahead = 0, time.Time{}, time.Time{}
}

// now is the time. real is the present with its monotonic reading, wall and floor
// are the wall clock and the state machine's, since the Unix epoch.
func (c *clock) now(real time.Time, wall, floor time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if real.Before(c.at) {
		real = c.at // another goroutine read its clock later and came first
	}
	next := wall
	if !c.at.IsZero() {
		passed := real.Sub(c.at)
		if !c.ahead.IsZero() && real.Sub(c.ahead) > aheadFor {
			passed -= passed / slower
		}
		next = max(next, c.last+passed)
	}
	next = max(next, floor)
	switch {
	case next <= wall:
		c.ahead = time.Time{}
	case c.ahead.IsZero():
		c.ahead = real
	}
	c.last, c.at = next, real
	return time.Unix(0, int64(next))
}

// sinceEpoch is an instant as clock counts it.
func sinceEpoch(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }
