package groupcommit

import (
	"slices"
	"time"

	"tarry/cluster/leaderrpc"
)

// dropOverdue fails the requests at the front of the queue that have waited so long
// that their clients have probably timed out. To commit them would only delay those
// behind them.
func (b *Batcher) dropOverdue(now time.Time) {
	b.mu.Lock()
	n := 0
	for n < len(b.queue) && !b.queue[n].Deadline.After(now) {
		b.bytes -= len(b.queue[n].Ops)
		b.count -= b.queue[n].Count
		n++
	}
	overdue := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	b.mu.Unlock()
	for _, r := range overdue {
		r.Done(nil, errBusy())
	}
}

// expire completes the requests that have waited too long for a leader and returns
// how long the next one still has.
func (b *Batcher) expire(now time.Time) time.Duration {
	b.mu.Lock()
	var expired []*Request
	kept := b.queue[:0]
	next := time.Second
	for _, r := range b.queue {
		if left := r.HoldUntil.Sub(now); left <= 0 {
			expired = append(expired, r)
			b.bytes -= len(r.Ops)
			b.count -= r.Count
		} else {
			kept = append(kept, r)
			next = min(next, left)
		}
	}
	clear(b.queue[len(kept):])
	b.queue = kept
	b.mu.Unlock()
	for _, r := range expired {
		r.Done(nil, leaderrpc.NoLeader())
	}
	return next
}

// take removes the next batch from the queue; nil: the queue is empty. A batch for
// another node does not contain what this node proposed as a leader (Request.Local),
// because the new leader would refuse the whole batch.
func (b *Batcher) take(forwards bool) (next *Batch, deposed []*Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eager = forwards
	n, size := 0, 0
	for n < len(b.queue) && (n == 0 || size+len(b.queue[n].Ops) <= MaxBatchBytes) {
		size += len(b.queue[n].Ops)
		n++
	}
	next = &Batch{requests: make([]*Request, 0, n)}
	for _, r := range b.queue[:n] {
		b.count -= r.Count
		if forwards && r.Local {
			deposed = append(deposed, r)
			continue
		}
		next.add(r)
	}
	rest := copy(b.queue, b.queue[n:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
	b.bytes -= size
	if len(next.requests) == 0 {
		return nil, deposed
	}
	b.inFlight++
	return next, deposed
}

// requeue puts a batch of which nothing was applied back to the front of the
// queue, for the next leader, after a pause. It completes the requests that have timed
// out.
func (b *Batcher) requeue(bt *Batch) {
	time.AfterFunc(RetryPause, func() {
		b.mu.Lock()
		closed := b.closed
		if !closed {
			b.queue = append(bt.requests, b.queue...)
			b.bytes += bt.Bytes
			b.count += bt.Count
		}
		b.mu.Unlock()
		if closed {
			for _, r := range bt.requests {
				r.Done(nil, errStopping())
			}
			return
		}
		b.expire(time.Now())
		b.signal()
	})
}

func (b *Batcher) close() {
	b.completed.Wait()
	b.mu.Lock()
	b.closed = true
	left := b.queue
	b.queue, b.bytes, b.count = nil, 0, 0
	b.mu.Unlock()
	for _, r := range left {
		r.Done(nil, errStopping())
	}
}
