package router

import (
	"errors"
	"sync"

	"tarry/job"
)

// Watch implements api.Queue.
func (q *Queue) Watch() job.Watch {
	return &watch{q: q, wake: make(chan struct{}, 1), of: make(map[int]job.Watch)}
}

// watch has a watch for each shard whose reservations it follows. They wake by one channel.
type watch struct {
	q    *Queue
	wake chan struct{}

	mu     sync.Mutex
	of     map[int]job.Watch
	closed bool
}

// Add implements job.Watch.
func (w *watch) Add(reservations []job.Token) error {
	by := make(map[int][]job.Token, 1)
	for _, t := range reservations {
		shard := w.q.shardOfSeq(t.Seq)
		by[shard] = append(by[shard], t)
	}
	var errs []error
	for shard, tokens := range by {
		if in := w.in(shard); in != nil {
			errs = append(errs, in.Add(tokens))
		}
	}
	return errors.Join(errs...)
}

// in returns the watch of a shard; nil: w is closed.
func (w *watch) in(shard int) job.Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	if w.of[shard] == nil {
		w.of[shard] = w.q.shards[shard].WatchWith(w.wake)
	}
	return w.of[shard]
}

// Wake implements job.Watch.
func (w *watch) Wake() <-chan struct{} { return w.wake }

// Take implements job.Watch.
func (w *watch) Take() (ended []job.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.of {
		ended = append(ended, in.Take()...)
	}
	return ended
}

// Close implements job.Watch.
func (w *watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, in := range w.of {
		in.Close()
	}
}
