package cluster

import (
	"context"
	"sync"
)

// retries has one of the requests that a leader refused ask it again, on behalf of
// all of them: with thousands that each ask, an election would cost two nodes all
// their processors.
type retries struct {
	mu   sync.Mutex
	over chan struct{} // closes when the one that asks has ended; nil: none asks
}

// retry is one request's part in it. Its end must be called.
type retry struct {
	of   *retries
	asks bool
}

// wait blocks until the leader should be asked again: at once when leadership
// changes, after a pause when this is the request that asks, and when that one has
// ended otherwise. It returns false when ctx has ended.
func (r *retry) wait(ctx context.Context, changed <-chan struct{}) bool {
	var over <-chan struct{}
	if !r.asks {
		r.asks, over = r.of.begin()
	}
	if r.asks {
		return pause(ctx, retryPause, changed)
	}
	select {
	case <-over:
		return true
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *retry) end() {
	if r.asks {
		r.of.end()
	}
}

func (r *retries) begin() (asks bool, over <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return false, r.over
	}
	r.over = make(chan struct{})
	return true, nil
}

func (r *retries) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.over)
	r.over = nil
}
