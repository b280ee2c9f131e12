package waits

import (
	"context"
	"sync"
)

// sendQueue is a queue between goroutines that must not block and one that sends on
// a stream. It is bounded by its use: each waiter has at most three messages in it.
type sendQueue[T any] struct {
	mu     sync.Mutex
	queue  []T
	closed bool
	wake   chan struct{}
}

func (o *sendQueue[T]) init() { o.wake = make(chan struct{}, 1) }

// put queues m; it reports false when the queue is closed.
func (o *sendQueue[T]) put(m T) bool {
	o.mu.Lock()
	ok := !o.closed
	if ok {
		o.queue = append(o.queue, m)
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return ok
}

// drain sends what is put until ctx ends or send fails.
func (o *sendQueue[T]) drain(ctx context.Context, send func(T) error) {
	for {
		o.mu.Lock()
		batch := o.queue
		o.queue = nil
		o.mu.Unlock()
		for i, m := range batch {
			if err := send(m); err != nil {
				o.restore(batch[i:])
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (o *sendQueue[T]) restore(unsent []T) {
	o.mu.Lock()
	o.queue = append(unsent, o.queue...)
	o.mu.Unlock()
}

// close refuses further messages and returns those that were not sent.
func (o *sendQueue[T]) close() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	left := o.queue
	o.queue = nil
	return left
}
