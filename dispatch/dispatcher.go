package dispatch

import (
	"errors"

	"tarry/job/jobpb"
)

// ErrStopped is the error of waiters when this node stops being the leader.
var ErrStopped = errors.New("the dispatcher has stopped: leadership moved or the node is stopping")

// Dispatcher matches waiters with the ready jobs of one group that this node leads. It exists for one leadership.
type Dispatcher struct {
	*Waiters
	*Source
	shared bool // the waiters go on to wait when it stops
}

// New returns a dispatcher for at most limit waiters, with one source. deliver, if not nil, is
// called with every list of jobs that a waiter gets.
func New(submit Submit, limit int, deliver func([]*jobpb.Reserved)) *Dispatcher {
	d := NewWaiters(limit).Dispatcher(submit, deliver)
	d.shared = false
	return d
}

// Dispatcher returns the dispatcher of one of the groups that this node leads. Stop closes its source
// only.
func (ws *Waiters) Dispatcher(submit Submit, deliver func([]*jobpb.Reserved)) *Dispatcher {
	return &Dispatcher{Waiters: ws, Source: ws.Open(submit, deliver), shared: true}
}

// Add is that of Waiters. The First and the Advance of w are proposed to the source.
func (d *Dispatcher) Add(w *Waiter) { d.add(w, d.Source) }

// Stop ends the leadership's part. Reserves in flight still deliver.
func (d *Dispatcher) Stop() {
	if d.shared {
		d.Close()
		return
	}
	d.Waiters.Stop()
}
