package groupcommit

import (
	"context"
	"runtime"
	"time"
)

const (
	// manyOps is the size of a batch from which its callers are worth waiting for. Below
	// it there are few callers, and a wait would only delay them.
	manyOps = 8
	// gatherTime bounds the wait, and so does gatherShare of the time that the last
	// batch took.
	gatherTime  = time.Millisecond
	gatherShare = 2
	// soon is how long after a batch its callers are expected back.
	soon = 2 * time.Millisecond
)

// round is a batch that has ended.
type round struct {
	count       int // operations
	sent, ended time.Time
}

// expected returns how many operations the next batch should have: three quarters of those
// that wait and of those whose callers have just got their results, because callers that
// work in a loop come back at once. If the next batch left with the first of them, the
// others would wait for it to end, and there would be twice as many batches. It returns 0
// if nothing should be waited for. It is called with b.mu held.
func (b *Batcher) expected(now time.Time) int {
	idle := b.last.count < manyOps || now.Sub(b.last.ended) > soon
	if idle || b.eager || b.inFlight > 0 || b.queue.count == 0 || b.queue.bytes >= largeBatch {
		return 0
	}
	return (b.last.count + b.queue.count) * 3 / 4
}

// gather waits on the leader until the callers of the last batch have returned.
func (b *Batcher) gather(ctx context.Context, alarm *time.Timer) {
	b.mu.Lock()
	want := b.expected(time.Now())
	enough := b.queue.count >= want
	limit := min(gatherTime, b.last.ended.Sub(b.last.sent)/gatherShare)
	b.mu.Unlock()
	if enough {
		return
	}
	alarm.Reset(limit)
	defer alarm.Stop()
	for !enough {
		select {
		case <-b.wake:
		case <-alarm.C:
			return
		case <-ctx.Done():
			return
		}
		runtime.Gosched()
		b.mu.Lock()
		enough = b.queue.count >= want || b.queue.bytes >= largeBatch
		b.mu.Unlock()
	}
}
