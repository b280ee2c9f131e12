package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tarry/internal/sleep"
	"tarry/job"
)

const (
	// readyWait is how long the first calls wait for a node that has just started.
	readyWait = 5 * time.Second
	// readyPause is between two questions to the leader while it cannot be asked.
	readyPause = 100 * time.Millisecond
)

// Current reports whether this node has, once since its start, had all the tokens that the leader
// had. Before, its state may be any old one: that of a new node lets everybody do everything.
type Current struct {
	leader *leader
	wait   time.Duration
	ready  chan struct{}
	late   atomic.Bool // a call has waited in vain, so the next ones do not
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newCurrent returns a Current that asks l until it knows; nil: this node has all.
func newCurrent(l *leader, wait time.Duration) *Current {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Current{leader: l, wait: wait, ready: make(chan struct{}), cancel: cancel}
	if c.wait == 0 {
		c.wait = readyWait
	}
	if l == nil {
		close(c.ready)
		return c
	}
	c.done.Go(func() {
		for l.reached(ctx) != nil {
			if !sleep.For(ctx, readyPause) {
				return
			}
		}
		close(c.ready)
	})
	return c
}

func (c *Current) close() {
	c.cancel()
	c.done.Wait()
}

// Ready returns a channel that is closed once this node has had what the leader had.
func (c *Current) Ready() <-chan struct{} { return c.ready }

// IsReady reports whether Ready is closed.
func (c *Current) IsReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// AwaitReady returns nil once Ready is closed, and an error after some seconds. They cover the
// election after a start. A node that is without a leader for longer fails at once.
func (c *Current) AwaitReady(ctx context.Context) error {
	if c.IsReady() {
		return nil
	}
	if !c.late.Load() {
		waited := sleep.Until(ctx, c.wait, c.ready)
		if c.IsReady() {
			return nil
		}
		if waited {
			c.late.Store(true)
		}
	}
	return job.NotApplied("this node has not caught up with a leader since it started, so what it has may be old, also the rules that say who may read it; use another node, or try again")
}

// Fresh waits until this node has the tokens that the leader has now. It is for rare calls that
// nothing but this node decides about.
func (c *Current) Fresh(ctx context.Context) error {
	if c.leader == nil {
		return nil
	}
	if err := c.leader.reached(ctx); err != nil {
		return WithoutLeader(err)
	}
	return nil
}

// WithoutLeader adds to the error of an operator's call, which failed because there is no leader, where
// to read what to do.
func WithoutLeader(err error) error {
	return job.NotApplied("%w; if the disks of a majority are lost for good, see docs/operations.md, A lost majority", err)
}
