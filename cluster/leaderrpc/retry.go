package leaderrpc

import (
	"context"
	"sync"
	"time"
)

// retryPause keeps a node from spinning while a leader that it knows of refuses its
// requests.
const retryPause = 20 * time.Millisecond

// retries makes one of the requests that a leader refused ask it again, on behalf of
// all of them. If thousands of requests each asked, an election would use all the
// processors of two nodes.
type retries struct {
	mu   sync.Mutex
	over chan struct{} // closes when the one that asks has ended; nil: none asks
}

// retry is one request in retries. The request must call end.
type retry struct {
	of   *retries
	asks bool
}

// wait blocks until the leader should be asked again: at once when leadership
// changes, after a pause when this is the request that asks, and when that one has
// ended otherwise. It returns false when ctx has ended.
func (r *retry) wait(ctx context.Context, changed <-chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	var over <-chan struct{}
	if !r.asks {
		r.asks, over = r.of.begin()
	}
	var soon <-chan time.Time
	if r.asks {
		soon = time.After(retryPause)
	}
	select {
	case <-over:
		return true
	case <-soon:
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
