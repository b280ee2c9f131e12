package groupcommit

import (
	"time"

	"tarry/cluster/leaderrpc"
)

// dropOverdue fails the requests at the front of the queue that have waited so long
// that their clients have probably timed out. To commit them would only delay those
// behind them.
func (b *Batcher) dropOverdue(now time.Time) {
	b.mu.Lock()
	overdue := b.queue.removeOverdue(now)
	b.mu.Unlock()
	for _, r := range overdue {
		r.Done(nil, errBusy())
	}
}

// expire completes the requests that have waited too long for a leader and returns
// how long the next one still has.
func (b *Batcher) expire(now time.Time) time.Duration {
	b.mu.Lock()
	next := time.Second
	expired := b.queue.remove(func(r *Request) bool {
		left := r.HoldUntil.Sub(now)
		if left > 0 {
			next = min(next, left)
		}
		return left <= 0
	})
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
	next = &Batch{requests: make([]*Request, 0, min(b.queue.requests, batchRequests))}
	b.queue.take(MaxBatchBytes, func(r *Request) {
		if forwards && r.Local {
			deposed = append(deposed, r)
			return
		}
		next.add(r)
	})
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
			b.queue.putBack(bt.requests)
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
	left := b.queue.remove(func(*Request) bool { return true })
	b.mu.Unlock()
	for _, r := range left {
		r.Done(nil, errStopping())
	}
}
