package cluster

import (
	"sync"
	"time"
)

// limitStep is by how much a timeLimit may be exceeded.
const limitStep = 100 * time.Millisecond

// timeLimit bounds many short waits by the same time. The waits that begin within
// limitStep share a timer: a context with a timer for each costs more than all else that
// a call does while it waits.
type timeLimit struct {
	limit time.Duration

	mu    sync.Mutex
	over  chan struct{} // of the waits that begin before until
	until time.Time
}

// begin returns a channel that closes after the limit, at most limitStep later.
func (l *timeLimit) begin() <-chan struct{} {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil || !now.Before(l.until) {
		over := make(chan struct{})
		l.over, l.until = over, now.Add(limitStep)
		time.AfterFunc(l.limit+limitStep, func() { close(over) })
	}
	return l.over
}
