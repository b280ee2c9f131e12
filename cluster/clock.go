package cluster

import (
	"sync"
	"time"

	"tarry/internal/hook"
)

// clock is the shard's clock on a leader: the wall clock, except that it never stops and
// never goes back. Otherwise the queue's time would stop when the wall clock is set back,
// or when an earlier leader's clock was fast. Once the wall clock catches up, reservations
// and delays would end early.
//
// So a clock that is ahead of the wall clock runs at the rate of the monotonic
// clock. If it stays ahead for longer than aheadFor, it runs slower until the two
// agree. A late delivery is safe, an early one is not.
//
// A wall clock that is off the majority's by more than most is ignored. Then the clock
// follows the majority's: the last confirmed time, advanced by the monotonic clock. So no
// entry moves the queue's time further ahead than that, whatever the leader's wall clock
// does.
type clock struct {
	most time.Duration // constant; 0: the clock always follows the wall clock
	// wentOff is called, with mu held, when the wall clock begins to be off the
	// majority's. It must not block.
	wentOff func()

	mu    sync.Mutex
	epoch uint64        // of the state machine's clock
	last  time.Duration // the last returned time, since the Unix epoch
	at    time.Time     // when, with its monotonic reading
	ahead time.Time     // since when it has been ahead of the wall clock; zero: it is not

	majority  time.Duration // the majority's clock when it was last confirmed
	confirmed time.Time     // when that was; zero: not in this leadership
	off       bool          // the wall clock is off the majority's
}

const (
	// aheadFor is how long the clock may be ahead before it runs slower.
	aheadFor = time.Minute
	// slower is the divisor of the rate that it loses then: one hour ahead is corrected
	// in eight hours.
	slower = 8
)

// begin resets the clock for a new leadership, because its values from an earlier one are
// outdated. What must be kept is in the state machine's clock.
//
// Until confirm is called, the present wall clock counts as the majority's.
func (c *clock) begin(real time.Time, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.at, c.ahead = 0, time.Time{}, time.Time{}
	c.majority, c.confirmed, c.off = wall, real, false
}

// confirm records the majority's clock at an instant.
func (c *clock) confirm(real time.Time, majority time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.majority, c.confirmed = majority, real
}

// trusted returns the wall clock, or the majority's if the wall clock is off. It is
// called with c.mu held.
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

// now returns the time. real is the present with its monotonic reading. wall and floor
// are the wall clock and the state machine's clock, since the Unix epoch. epoch is the
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
		real = c.at // another goroutine has read its clock later and was here first
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

// sinceEpoch returns an instant as clock counts it.
func sinceEpoch(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

// Now returns the shard's clock, for a leader. It is never behind the state machine's.
func (s *Shard) Now() time.Time {
	now, _ := s.now()
	return now
}

// now returns the shard's clock and the epoch that the time belongs to.
func (s *Shard) now() (time.Time, uint64) {
	applied := s.machine.Applied()
	floor := time.Duration(applied.ClockMS) * time.Millisecond
	// The monotonic reading must not be older than the wall clock's: what passes between the two
	// would count twice, and the clock would be ahead by the longest pause that ever was there.
	wall := s.cfg.Host.Wall()
	real := time.Now()
	return s.clock.now(real, sinceEpoch(wall), floor, applied.ClockEpoch), applied.ClockEpoch
}

// clocks implements clockguard.Clocks.
type clocks struct{ *Shard }

func (c clocks) Wall() time.Time                  { return c.cfg.Host.Wall() }
func (c clocks) Queue() time.Time                 { return c.Now() }
func (c clocks) Confirmed(at, majority time.Time) { c.clock.confirm(at, sinceEpoch(majority)) }

// clockSkew returns how far the queue's clock is ahead of this node's. Only on the
// leader does the queue's clock run. Elsewhere it is the time of the last entry, which
// may be behind just because the queue is idle.
func (s *Shard) clockSkew() time.Duration {
	if s.dispatcher() != nil {
		return s.Now().Sub(s.cfg.Host.Wall().Round(0))
	}
	return max(0, time.UnixMilli(s.machine.Applied().ClockMS).Sub(s.cfg.Host.Wall()))
}

// wallClock is this machine's clock, with an offset if the fault harness sets one.
func wallClock() time.Time { return time.Now().Add(hook.Clock()) }
