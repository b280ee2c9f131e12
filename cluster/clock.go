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
//
// A wall clock that is off the majority's by more than most is not followed: the
// majority's is, as it was last confirmed and has gone on since by the monotonic
// clock. So no entry takes the queue's time further ahead than that, whatever
// becomes of the leader's wall clock.
type clock struct {
	most time.Duration // never changed; 0: the wall clock is always followed
	// wentOff is called, with mu held, when the wall clock has gone off the
	// majority's. It must not block.
	wentOff func()

	mu    sync.Mutex
	epoch uint64        // of the state machine's clock
	last  time.Duration // what was told last, since the Unix epoch
	at    time.Time     // when, with its monotonic reading
	ahead time.Time     // since when it has been ahead of the wall clock; zero: it is not

	majority  time.Duration // what the voters' clocks said last
	confirmed time.Time     // when; zero: never in this leadership
	off       bool          // the wall clock is off that
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
//
// Until confirm tells otherwise, the wall clock counts as it is at this instant.
func (c *clock) begin(real time.Time, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.at, c.ahead = 0, time.Time{}, time.Time{}
	c.majority, c.confirmed, c.off = wall, real, false
}

// confirm takes in what the voters' clocks said at an instant.
func (c *clock) confirm(real time.Time, majority time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.majority, c.confirmed = majority, real
}

// trusted is the wall clock, or the majority's when that is another. It is called
// with c.mu held.
func (c *clock) trusted(real time.Time, wall time.Duration) time.Duration {
	if c.most == 0 || c.confirmed.IsZero() {
		return wall
	}
	majority := c.majority + real.Sub(c.confirmed)
	off := (wall - majority).Abs() > c.most
	if off && !c.off {
		c.wentOff()
	}
	c.off = off
	if off {
		return majority
	}
	return wall
}

// now is the time. real is the present with its monotonic reading, wall and floor
// are the wall clock and the state machine's, since the Unix epoch; epoch is the
// latter's: when the state machine's clock was set back, so is this one.
func (c *clock) now(real time.Time, wall, floor time.Duration, epoch uint64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case epoch < c.epoch: // read before it was set back
		return time.Unix(0, int64(floor))
	case epoch > c.epoch:
		c.epoch, c.last, c.at, c.ahead = epoch, 0, time.Time{}, time.Time{}
	}
	if real.Before(c.at) {
		real = c.at // another goroutine read its clock later and came first
	}
	wall = c.trusted(real, wall)
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
