package dispatch

import (
	"errors"

	"tarry/job/jobpb"
)

// ErrStopped is the error of waiters when this node stops being the leader.
var ErrStopped = errors.New("the dispatcher has stopped: leadership moved or the node is stopping")

// Dispatcher matches the waiters of a leader with the ready jobs of its group.
type Dispatcher struct {
	*Waiters
	*Source
}

// New returns a dispatcher for at most limit waiters, with one source. deliver, if not nil, is
// called with every list of jobs that a waiter gets.
func New(submit Submit, limit int, deliver func([]*jobpb.Reserved)) *Dispatcher {
	ws := NewWaiters(limit)
	return &Dispatcher{Waiters: ws, Source: ws.Open(submit, deliver)}
}

// Add is that of Waiters. The First and the Advance of w are proposed to the source.
func (d *Dispatcher) Add(w *Waiter) { d.add(w, d.Source) }
