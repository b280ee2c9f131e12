package leaderrpc

import (
	"context"
	"sync"
	"time"

	"tarry/internal/sleep"
)

// Leader is the leader that this node knows.
type Leader struct {
	ID   string // Raft server id; empty when none is known
	Addr string // cluster address, host:port
}

// Watch holds the present leader and signals when it changes.
type Watch struct {
	mu      sync.Mutex
	now     Leader
	changed chan struct{} // closed at the next change
	lost    time.Time     // since when there is no leader; zero: there is one
}

// NewWatch returns a Watch without a leader.
func NewWatch(now time.Time) *Watch {
	return &Watch{changed: make(chan struct{}), lost: now}
}

// Set records the leader; a leader set again still counts as a change, because
// its term may be new.
func (w *Watch) Set(l Leader, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.ID == "" && w.now.ID == "" {
		return
	}
	if l.ID == "" {
		w.lost = now
	} else {
		w.lost = time.Time{}
	}
	w.now = l
	close(w.changed)
	w.changed = make(chan struct{})
}

// Get returns the leader and a channel that closes at the next change.
func (w *Watch) Get() (Leader, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.changed
}

// Since returns for how long there has been no leader; 0 with one.
func (w *Watch) Since(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost.IsZero() {
		return 0
	}
	return now.Sub(w.lost)
}

// DeposedGrace is how long a call to a leader continues after another leader is known.
// A leader that has transferred leadership still replies; one that hangs never does.
const DeposedGrace = 500 * time.Millisecond

// while returns a context that ends shortly after l stops being the leader.
// Without it, calls to a leader that hangs would block this node until their
// connection fails, long after another node leads. The returned function ends its
// goroutine.
func while(ctx context.Context, l Leader, leader func() (Leader, <-chan struct{})) (context.Context, context.CancelFunc) {
	now, changed := leader()
	if changed == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			if now != l && now.ID != "" {
				sleep.For(ctx, DeposedGrace)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			now, changed = leader()
		}
	}()
	return ctx, cancel
}
