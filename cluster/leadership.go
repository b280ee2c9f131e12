package cluster

import (
	"context"
	"sync"
	"time"
)

// leader is who leads the shard, as far as this node knows.
type leader struct {
	id   string // Raft server id; empty when none is known
	addr string // cluster address, host:port
}

// leaderWatch holds the present leader and tells when it changes.
type leaderWatch struct {
	mu      sync.Mutex
	now     leader
	changed chan struct{} // closed at the next change
	lost    time.Time     // since when there has been none; zero with a leader
}

func newLeaderWatch(now time.Time) *leaderWatch {
	return &leaderWatch{changed: make(chan struct{}), lost: now}
}

// set records the leader; a leader set again still counts as a change, because
// its term may be new.
func (w *leaderWatch) set(l leader, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.id == "" && w.now.id == "" {
		return
	}
	if l.id == "" {
		w.lost = now
	} else {
		w.lost = time.Time{}
	}
	w.now = l
	close(w.changed)
	w.changed = make(chan struct{})
}

// get returns the leader and a channel that closes at the next change.
func (w *leaderWatch) get() (leader, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.changed
}

// since returns for how long there has been no leader; 0 with one.
func (w *leaderWatch) since(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost.IsZero() {
		return 0
	}
	return now.Sub(w.lost)
}

// deposedGrace is how long a call to a leader goes on after another was seen: a
// leader that hands over still answers, one that hangs never will.
const deposedGrace = 500 * time.Millisecond

// while returns a context that ends shortly after l stops being the leader.
// Without it, calls to a leader that hangs would hold up this node until their
// connection is given up, long after another leads.
func (w *leaderWatch) while(ctx context.Context, l leader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			now, changed := w.get()
			if now != l && now.id != "" {
				pause(ctx, deposedGrace, nil)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
