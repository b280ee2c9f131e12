package dispatch

import (
	"container/list"
	"errors"
	"slices"
	"sync"

	"tarry/job/jobpb"
)

// ErrStopped is what waiters get when this node stops being the leader.
var ErrStopped = errors.New("the dispatcher has stopped: leadership moved or the node is stopping")

// maxOpsPerMatch bounds the reserves proposed at once, so that one entry never
// holds the state machine for long.
const maxOpsPerMatch = 256

const (
	// answerBytes bounds the bodies of all answers under way, so that many
	// reserves for many large jobs do not bring them all into memory at once. It
	// is shared out evenly; each reserve may have one job of any size.
	answerBytes = 128 << 20

	// placesPerWaiter bounds the topics that the waiters name together, as a
	// multiple of the bound on waiters: a waiter has a place in the queue of
	// each topic that it names.
	placesPerWaiter = 10
)

// Update is the state of one topic after a batch was applied.
type Update struct {
	Topic   string
	Ready   uint64
	NextDue int64 // Unix ms; 0 none
	// Soon are the due instants of its first delayed jobs, ascending; perhaps
	// not all of them.
	Soon []int64
}

// Submit proposes ops as one unit. It must not block; done is called once, on
// any goroutine, with one result per op or an error.
type Submit func(ops []*jobpb.Op, done func([]*jobpb.Result, error))

// Dispatcher matches waiters with ready jobs.
//
// Its lock is held for bookkeeping only: never while submitting, never while a
// waiter's Done runs.
type Dispatcher struct {
	submit  Submit
	deliver func([]*jobpb.Reserved) // observer of what is handed out; may be nil

	mu      sync.Mutex
	topics  map[string]*topic
	waited  map[*topic]struct{} // those with waiters in their queue
	arrived uint64
	waiters map[*Waiter]struct{} // all that have not ended
	stopped bool
	limit   int
	busy    int // waiters with a Reserve under way
	places  int // topics named by all waiters together
}

// New makes a dispatcher that holds at most limit waiters. deliver, when not
// nil, sees every list of jobs handed to a waiter.
func New(submit Submit, limit int, deliver func([]*jobpb.Reserved)) *Dispatcher {
	if deliver == nil {
		deliver = func([]*jobpb.Reserved) {}
	}
	return &Dispatcher{
		submit: submit, deliver: deliver, limit: limit,
		topics: map[string]*topic{}, waited: map[*topic]struct{}{}, waiters: map[*Waiter]struct{}{},
	}
}

// ErrFull is what a waiter gets past the bound on waiters.
var ErrFull = errors.New("too many reserves are waiting")

// Add registers a waiter. It does not block; the outcome comes by w.Done, which
// may run before Add returns.
func (d *Dispatcher) Add(w *Waiter) {
	w.op = &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: w.Reserve}}
	d.mu.Lock()
	full := len(d.waiters) >= d.limit || d.places+len(w.Reserve.Topics) > placesPerWaiter*d.limit
	if d.stopped || full {
		err := ErrFull
		if d.stopped {
			err = ErrStopped
		}
		w.state = ended
		d.mu.Unlock()
		w.Done(nil, err)
		return
	}
	d.arrived++
	w.number = d.arrived
	d.waiters[w] = struct{}{}
	d.places += len(w.Reserve.Topics)
	d.enqueue(w)
	ms := d.matchTopics(w.Reserve.Topics)
	nothing := w.Poll && w.state == waiting
	if nothing {
		d.end(w)
	}
	d.mu.Unlock()
	if nothing {
		w.Done(nil, nil)
	}
	d.propose(ms)
}

// Withdraw ends a wait. With keep, a Reserve that is under way for w still
// delivers its jobs to Done (the wait is over, the consumer is not); without, the
// consumer is gone and such jobs go back to their topics. Done is called in
// either case, once.
func (d *Dispatcher) Withdraw(w *Waiter, keep bool) {
	d.mu.Lock()
	idle := w.state == waiting
	switch w.state {
	case waiting:
		d.end(w)
	case busy:
		w.Poll = true // whatever comes is the last answer
		w.gone = w.gone || !keep
	}
	d.mu.Unlock()
	if idle {
		w.Done(nil, nil)
	}
}

// Update takes in what a batch changed and hands out what became ready. It is
// called in the order of the log and does not block.
func (d *Dispatcher) Update(changes []Update) {
	d.mu.Lock()
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		t := d.topic(c.Topic)
		t.ready, t.nextDue, t.soon = c.Ready, c.NextDue, c.Soon
		if t.queue.Len() > 0 {
			names = append(names, c.Topic)
		} else {
			d.forget(t)
		}
	}
	ms := d.matchTopics(names)
	d.mu.Unlock()
	d.propose(ms)
}

// Prime is Update for topics that no Update has named yet: a new leader sets the
// hook for updates first and then primes with what was there before.
func (d *Dispatcher) Prime(all []Update) {
	d.mu.Lock()
	fresh := all[:0:0]
	for _, c := range all {
		if _, known := d.topics[c.Topic]; !known {
			fresh = append(fresh, c)
		}
	}
	d.mu.Unlock()
	d.Update(fresh)
}

// Claim takes waiters for the jobs that are due at now (Unix ms) and returns
// their Reserves, for the caller to propose in the same entry as the Advance. It
// counts on no more jobs than are known to be due, so none of the Reserves is
// empty. The caller passes the results of exactly these ops to done.
func (d *Dispatcher) Claim(now int64) (ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var m match
	for t := range d.waited {
		for due := t.due(now); due > 0 && t.queue.Len() > 0 && len(m.ops) < maxOpsPerMatch; {
			w := t.queue.Front().Value.(*Waiter)
			d.take(w, &m)
			due -= int(w.Reserve.Max)
		}
	}
	if len(m.ops) == 0 {
		return nil, nil
	}
	return m.ops, func(rs []*jobpb.Result, err error) { d.finish(m.waiters, rs, err) }
}

// Stop ends all waits with ErrStopped. Reserves under way still deliver.
func (d *Dispatcher) Stop() {
	d.mu.Lock()
	d.stopped = true
	var idle []*Waiter
	for w := range d.waiters {
		if w.state == waiting {
			idle = append(idle, w)
		} else {
			w.Poll = true
		}
	}
	for _, w := range idle {
		d.end(w)
	}
	d.mu.Unlock()
	for _, w := range idle {
		w.Done(nil, ErrStopped)
	}
}

// Waiting returns how many reserves wait or are being served.
func (d *Dispatcher) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiters)
}

// The methods below need d.mu.

func (d *Dispatcher) topic(name string) *topic {
	t := d.topics[name]
	if t == nil {
		t = &topic{name: name, queue: list.New()}
		d.topics[name] = t
	}
	return t
}

func (d *Dispatcher) forget(t *topic) {
	if t.idle() {
		delete(d.topics, t.name)
	}
}

func (d *Dispatcher) enqueue(w *Waiter) {
	w.state = waiting
	for i, name := range w.Reserve.Topics {
		if slices.Contains(w.Reserve.Topics[:i], name) {
			continue
		}
		t := d.topic(name)
		t.enqueue(w)
		d.waited[t] = struct{}{}
	}
}

// dequeue takes w out of the queues of its topics.
func (d *Dispatcher) dequeue(w *Waiter) {
	for _, p := range w.places {
		p.topic.queue.Remove(p.elem)
		if p.topic.queue.Len() == 0 {
			delete(d.waited, p.topic)
		}
	}
}

// end takes w out of everything. The caller calls Done after unlocking.
func (d *Dispatcher) end(w *Waiter) {
	d.dequeue(w)
	for _, p := range w.places {
		d.forget(p.topic)
	}
	w.places = nil
	w.state = ended
	d.places -= len(w.Reserve.Topics)
	delete(d.waiters, w)
}
