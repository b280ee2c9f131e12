package dispatch

import (
	"sync/atomic"

	"tarry/job/jobpb"
)

// Outcome receives the outcome of one waiter, for a consumer that may give up at any moment. Jobs
// that arrive after it gave up, and those that arrived before and were not received, are given
// back: none is reserved for nobody.
type Outcome struct {
	// C holds the outcome. There is one receiver.
	C         chan Got
	giveBack  func([]*jobpb.Reserved)
	abandoned atomic.Bool
}

// Got is what a waiter's Done was called with.
type Got struct {
	Jobs []*jobpb.Reserved
	Err  error
}

// NewOutcome returns an Outcome, whose Done is that of a waiter. giveBack releases jobs that no
// consumer saw. It must not block.
func NewOutcome(giveBack func([]*jobpb.Reserved)) *Outcome {
	return &Outcome{C: make(chan Got, 1), giveBack: giveBack}
}

// Done implements Waiter.Done.
func (o *Outcome) Done(jobs []*jobpb.Reserved, err error) {
	o.C <- Got{jobs, err}
	if o.abandoned.Load() {
		o.clear()
	}
}

// Abandon gives back the jobs that the waiter got, or still gets. Cancel makes it get them soon.
// It does not block.
func (o *Outcome) Abandon() {
	o.abandoned.Store(true)
	o.clear()
}

// clear takes the outcome, if it is there: either Done or Abandon finds it.
func (o *Outcome) clear() {
	select {
	case got := <-o.C:
		if len(got.Jobs) > 0 {
			o.giveBack(got.Jobs)
		}
	default:
	}
}
