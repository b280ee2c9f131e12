package dispatch

import (
	"container/heap"
	"errors"
	"sync"

	"tarry/job/jobpb"
)

// ErrStopped is what waiters get when this node stops being the leader.
var ErrStopped = errors.New("the dispatcher has stopped: leadership moved or the node is stopping")

const (
	// maxOpsPerMatch bounds the reserves proposed at once, so that one entry never
	// holds the state machine for long.
	maxOpsPerMatch = 256

	// maxBytesPerMatch bounds their encoding: a reserve may name a thousand topics.
	// The one that passes the bound is the last, so a match has up to one reserve
	// more.
	maxBytesPerMatch = 64 << 10

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
	due     dueTopics // those with waiters in their queue and an instant to come
	arrived uint64
	named   uint64               // waiters that have named their topics
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
		topics: map[string]*topic{}, waiters: map[*Waiter]struct{}{},
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
	d.name(w)
	d.enqueue(w)
	ms := d.match(servable(nil, w))
	nothing := w.Poll && w.state == waiting
	if nothing {
		d.dequeue(w)
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
		d.dequeue(w)
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
	var touched []*topic
	for _, c := range changes {
		t := d.topic(c.Topic)
		t.ready, t.nextDue, t.soon = c.Ready, c.NextDue, c.Soon
		d.reindex(t)
		if t.servable() {
			touched = append(touched, t)
		}
		d.forget(t)
	}
	ms := d.match(touched)
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
	var due []*topic
	for len(d.due) > 0 && d.due[0].nextDue <= now && !m.full() {
		t := heap.Pop(&d.due).(*topic)
		due = append(due, t)
		for jobs := t.dueBy(now); jobs > 0 && len(t.queue) > 0 && !m.full(); {
			w := t.queue[0].waiter
			d.take(w, now, &m)
			jobs -= int(w.Reserve.Max)
		}
	}
	for _, t := range due {
		d.reindex(t) // until an Update says what the Advance has moved
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
	// Nobody is served any more, so no queue needs to be kept in order.
	for _, t := range d.topics {
		t.queue, t.dueIndex = nil, absent
	}
	d.due = nil
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
		t = &topic{name: name, dueIndex: absent}
		d.topics[name] = t
	}
	return t
}

// forget drops t when nothing is known of it, so that memory follows what is live.
func (d *Dispatcher) forget(t *topic) {
	if t.idle() {
		delete(d.topics, t.name)
	}
}

// name gives w a place for each topic that it names, for as long as it lives.
func (d *Dispatcher) name(w *Waiter) {
	d.named++
	w.places = make([]place, 0, len(w.Reserve.Topics)) // it must not move: queues point into it
	for _, name := range w.Reserve.Topics {
		t := d.topic(name)
		if t.namedBy == d.named {
			continue // it names the topic twice
		}
		t.namedBy = d.named
		t.names++
		w.places = append(w.places, place{waiter: w, topic: t, index: absent})
	}
}

// enqueue puts w into the queues of its topics, by its arrival: one whose Reserve
// found nothing keeps its turn.
func (d *Dispatcher) enqueue(w *Waiter) {
	w.state = waiting
	for i := range w.places {
		p := &w.places[i]
		heap.Push(&p.topic.queue, p)
		if len(p.topic.queue) == 1 {
			d.reindex(p.topic)
		}
	}
}

// dequeue takes w out of the queues of its topics.
func (d *Dispatcher) dequeue(w *Waiter) {
	for i := range w.places {
		p := &w.places[i]
		heap.Remove(&p.topic.queue, p.index)
		if len(p.topic.queue) == 0 {
			d.reindex(p.topic)
		}
	}
}

// reindex puts t where it belongs among the topics that are due some time.
func (d *Dispatcher) reindex(t *topic) {
	belongs := t.nextDue != 0 && len(t.queue) > 0
	switch {
	case belongs && t.dueIndex == absent:
		heap.Push(&d.due, t)
	case belongs:
		heap.Fix(&d.due, t.dueIndex)
	case t.dueIndex != absent:
		heap.Remove(&d.due, t.dueIndex)
	}
}

// end takes w, which is in no queue, out of everything else. The caller calls Done
// after unlocking.
func (d *Dispatcher) end(w *Waiter) {
	for _, p := range w.places {
		p.topic.names--
		d.forget(p.topic)
	}
	w.places = nil
	w.state = ended
	d.places -= len(w.Reserve.Topics)
	delete(d.waiters, w)
}
