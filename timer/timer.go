package timer

import (
	"context"
	"time"
)

const (
	// maxSleep bounds one sleep, because a sleep is measured by the monotonic clock and
	// due times by the wall clock: after the wall clock is set forward, jobs are at most
	// this late.
	maxSleep = time.Second

	// A failed advance is retried after minBackoff, doubling to maxBackoff.
	minBackoff = 10 * time.Millisecond
	maxBackoff = time.Second
)

// Shard is what the timer needs of a shard.
type Shard interface {
	// NextDue returns the earliest time at which something is due, in Unix milliseconds;
	// 0 when nothing is waiting.
	NextDue() int64
	// Now returns the shard's time, which is never behind the state machine's.
	Now() time.Time
	// Advance moves what is due, or a bounded part of it, and blocks until that is
	// committed and applied, so that NextDue covers what is left.
	Advance(ctx context.Context) error
}

// Timer drives one shard. Make one with New, run it with Run.
type Timer struct {
	shard Shard
	wake  chan struct{}
}

// New returns a timer that does nothing until Run.
func New(s Shard) *Timer { return &Timer{shard: s, wake: make(chan struct{}, 1)} }

// Notify reports that NextDue may have become earlier. It does not block and may be
// called from any goroutine, also when the timer does not run.
func (t *Timer) Notify() {
	select {
	case t.wake <- struct{}{}:
	default: // a wake-up is pending already; it will see the new time too
	}
}

// Run advances the shard whenever something is due, until ctx ends. It blocks.
func (t *Timer) Run(ctx context.Context) {
	alarm := time.NewTimer(maxSleep)
	defer alarm.Stop()
	backoff := minBackoff
	for ctx.Err() == nil {
		due := t.shard.NextDue()
		sleep := maxSleep
		if due != 0 {
			sleep = min(time.UnixMilli(due).Sub(t.shard.Now()), maxSleep)
		}
		if due != 0 && sleep <= 0 {
			if err := t.shard.Advance(ctx); err == nil {
				backoff = minBackoff
				continue
			}
			// The shard reports its own failures; what is due stays due.
			sleep, backoff = backoff, min(2*backoff, maxBackoff)
			t.pause(ctx, alarm, sleep)
			continue
		}
		t.sleep(ctx, alarm, sleep, due != 0)
	}
}

// sleep waits for d (when something is waiting at all), a Notify, or ctx.
func (t *Timer) sleep(ctx context.Context, alarm *time.Timer, d time.Duration, waiting bool) {
	var fire <-chan time.Time
	if waiting {
		alarm.Reset(d)
		fire = alarm.C
	}
	select {
	case <-fire:
	case <-t.wake:
	case <-ctx.Done():
	}
}

// pause waits for d or ctx. Notify does not end it early.
func (t *Timer) pause(ctx context.Context, alarm *time.Timer, d time.Duration) {
	alarm.Reset(d)
	select {
	case <-alarm.C:
	case <-ctx.Done():
	}
}
