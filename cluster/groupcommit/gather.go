package groupcommit

import (
	"context"
	"runtime"
	"time"

	"tarry/cluster/alarm"
)

const (
	// gatherTime bounds the wait, and so does gatherShare of the time that the last
	// batch took.
	gatherTime  = time.Millisecond
	gatherShare = 2
	// soon is how long after a batch its callers are expected back.
	soon = 2 * time.Millisecond
	// maxSkipped is one more than the waits that are left out at most after one in vain.
	maxSkipped = 31
)

// round is a batch that has ended.
type round struct {
	callers     int
	waiting     int // callers of other requests when it ended
	sent, ended time.Time
}

// backoff leaves out waits while nobody comes: none after the first that was in vain, and then
// twice as many after each. So where requests come by themselves, and not from callers in a
// loop, few of them are delayed.
type backoff struct {
	left    int // waits to leave out
	skipped int // one more than were left out before the last wait
}

// skip reports whether to leave out a wait.
func (w *backoff) skip() bool {
	if w.left == 0 {
		return false
	}
	w.left--
	return true
}

// waited takes note of a wait.
func (w *backoff) waited(inVain bool) {
	if !inVain {
		*w = backoff{}
		return
	}
	w.skipped = min(2*w.skipped+1, maxSkipped)
	w.left = w.skipped - 1
}

// expected returns how many callers the next batch should have: those that waited when the last
// one ended, and three quarters of those that then got their results, because callers that
// work in a loop come back at once. If the next batch left with the first of them, the
// others would wait for it to end, and there would be twice as many batches. It returns 0
// if nothing should be waited for. It is called with b.mu held.
func (b *Batcher) expected(now time.Time) int {
	if now.Sub(b.last.ended) > soon || b.eager || b.inFlight > 0 || b.queue.callers == 0 || b.queue.bytes >= largeBatch {
		return 0
	}
	return b.last.waiting + (3*b.last.callers+3)/4
}

// gather waits on the leader until the callers of the last batch have returned.
func (b *Batcher) gather(ctx context.Context, ring *alarm.Alarm) {
	b.mu.Lock()
	want, had := b.expected(time.Now()), b.queue.callers
	leaves := had >= want || b.backoff.skip()
	limit := min(gatherTime, b.last.ended.Sub(b.last.sent)/gatherShare)
	b.mu.Unlock()
	if leaves {
		return
	}
	for len(ring.C) > 0 {
		<-ring.C // of an earlier wait
	}
	ring.Reset(limit)
	for over := false; !over; {
		select {
		case <-b.wake:
		case <-ring.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		runtime.Gosched()
		b.mu.Lock()
		over = over || b.queue.callers >= want || b.queue.bytes >= largeBatch
		if over {
			b.backoff.waited(b.queue.callers == had)
		}
		b.mu.Unlock()
	}
	ring.Stop()
}
