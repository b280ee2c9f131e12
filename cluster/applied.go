package cluster

import (
	"context"
	"sync"

	"tarry/job"
)

// appliedWatch tells readers when this node has applied an index.
type appliedWatch struct {
	mu      sync.Mutex
	index   uint64
	changed chan struct{} // closed at the next advance, if anybody waits
}

// set is called by the state machine's goroutine after each batch.
func (a *appliedWatch) set(index uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if index <= a.index {
		return
	}
	a.index = index
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// wait blocks until index is applied or ctx ends.
func (a *appliedWatch) wait(ctx context.Context, index uint64) error {
	for {
		a.mu.Lock()
		if a.index >= index {
			a.mu.Unlock()
			return nil
		}
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return job.NotApplied("this node is behind: it has not yet applied entry %d of the log", index)
		}
	}
}
