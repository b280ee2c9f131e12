package dispatch

import (
	"container/heap"
	"errors"
	"sync"

	"tarry/job/jobpb"
)

// ErrStopped is the error of waiters when this node stops being the leader.
var ErrStopped = errors.New("the dispatcher has stopped: leadership moved or the node is stopping")

const (
	// maxOpsPerMatch bounds the reserves proposed at once, so that one entry does not
	// hold up the state machine.
	maxOpsPerMatch = 256

	// maxBytesPerMatch bounds their encoding: a reserve may name a thousand topics. The
	// reserve that passes the bound is the last, so a match may exceed it by one reserve.
	maxBytesPerMatch = 64 << 10

	// maxBodyBytes bounds the bodies of all responses in flight, so that many reserves for
	// many large jobs do not load them all into memory at once. It is divided evenly;
	// each reserve may have one job of any size.
	maxBodyBytes = 128 << 20

	// placesPerWaiter bounds the topics that the waiters name together, as a
	// multiple of the bound on waiters: a waiter has a place in the queue of
	// each topic that it names.
	placesPerWaiter = 10
)

// Update is the state of one topic after a batch was applied.
type Update struct {
	Topic string
	Ready uint64
	// Held are further ready jobs, each of which a Reserve can get once a reservation of
	// the topic has ended.
	Held    uint64
	NextDue int64 // Unix ms; 0 none
	// Soon are the due times of its first delayed jobs, ascending; perhaps not all of
	// them.
	Soon []int64
}

// Submit proposes ops as one unit. It must not block; done is called once, on
// any goroutine, with one result per op or an error.
type Submit func(ops []*jobpb.Op, done func([]*jobpb.Result, error))

// Dispatcher matches waiters with ready jobs.
//
// Its lock must not be held while submitting or while a waiter's Done runs.
type Dispatcher struct {
	submit  Submit
	deliver func([]*jobpb.Reserved)   // observer of the reserved jobs; may be nil
	tenant  func(topic string) string // may be nil

	mu      sync.Mutex
	topics  map[string]*topic
	due     dueTopics // those with waiters in their queue and a due time
	arrived uint64
	named   uint64               // waiters that have named their topics
	waiters map[*Waiter]struct{} // all that have not ended
	stopped bool
	limit   int
	busy    int // waiters with a Reserve in flight
	places  int // topics named by all waiters
}

// New returns a dispatcher for at most limit waiters. deliver, if not nil, is called with
// every list of jobs that a waiter gets.
func New(submit Submit, limit int, deliver func([]*jobpb.Reserved)) *Dispatcher {
	if deliver == nil {
		deliver = func([]*jobpb.Reserved) {}
	}
	return &Dispatcher{
		submit: submit, deliver: deliver, limit: limit,
		topics: map[string]*topic{}, waiters: map[*Waiter]struct{}{},
	}
}

// Tenants makes the reserves that are proposed together be for topics of one tenant, so that the
// tenants can take turns where proposals wait. tenant must be cheap. It is called before the first
// Add.
func (d *Dispatcher) Tenants(tenant func(topic string) string) { d.tenant = tenant }

// tenantOf returns whose a topic is; empty: nobody's.
func (d *Dispatcher) tenantOf(t *topic) string {
	if d.tenant == nil {
		return ""
	}
	return d.tenant(t.name)
}

// ErrFull is the error of a waiter past the bound on waiters.
var ErrFull = errors.New("too many reserves are waiting")

// Add registers a waiter. One with First is never too many: it does not wait, and its First
// must not fail because others do. It does not block. It passes the outcome to w.Done, which may
// be called before Add returns.
func (d *Dispatcher) Add(w *Waiter) {
	w.op = &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: w.Reserve}}
	d.mu.Lock()
	full := len(w.First) == 0 && (len(d.waiters) >= d.limit || d.places+len(w.Reserve.Topics) > placesPerWaiter*d.limit)
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
	var ms []match
	if len(w.First) > 0 {
		ms = []match{d.matchFirst(w)}
	} else if ms = d.match(servable(nil, w)); w.state == waiting {
		if m, ok := d.matchDue(w); ok {
			ms = append(ms, m)
		}
	}
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

// Alone reports whether the First of a waiter that was added are proposed without a Reserve,
// because there is no job for it.
func (d *Dispatcher) Alone(w *Waiter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return w.alone
}

// Cancel ends a wait. With keep, a Reserve in flight for w still delivers its jobs to
// Done: the wait is over, but the consumer is connected. Without keep, the consumer is
// gone and such jobs go back to their topics. Done is called once in either case.
func (d *Dispatcher) Cancel(w *Waiter, keep bool) {
	d.mu.Lock()
	idle := w.state == waiting
	switch w.state {
	case waiting:
		d.dequeue(w)
		d.end(w)
	case busy:
		w.Poll = true // the next outcome is final
		w.gone = w.gone || !keep
	}
	d.mu.Unlock()
	if idle {
		w.Done(nil, nil)
	}
}

// Update records what a batch changed and assigns the jobs that became ready. It must be
// called in log order and does not block.
func (d *Dispatcher) Update(changes []Update) {
	d.mu.Lock()
	var touched []*topic
	for _, c := range changes {
		t := d.topic(c.Topic)
		t.ready, t.held, t.nextDue, t.soon = c.Ready, c.Held, c.NextDue, c.Soon
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

// Prime is Update for topics that no Update has named yet: a new leader sets the hook for
// updates first, and then primes with the earlier state.
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

// Claim takes waiters for the jobs that are due at now (Unix ms) and returns their
// Reserves, for the caller to propose in the same entry as the Advance. It claims no more
// jobs than are known to be due, so none of the Reserves is empty. The caller must pass
// the results of exactly these ops to done.
func (d *Dispatcher) Claim(now int64) (ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
	m, _ := d.claim(now, false)
	if len(m.ops) == 0 {
		return nil, nil
	}
	return m.ops, func(rs []*jobpb.Result, err error) { d.finish(m.waiters, rs, err) }
}

// ClaimAhead is Claim for an advance that will take effect at an instant. What is due up to
// then is not claimed again until done was called.
func (d *Dispatcher) ClaimAhead(at int64) (reserves []*jobpb.Reserve, done func([]*jobpb.Result, error)) {
	m, topics := d.claim(at, true)
	if len(m.ops) == 0 {
		return nil, nil
	}
	for _, op := range m.ops {
		reserves = append(reserves, op.GetReserve())
	}
	return reserves, func(rs []*jobpb.Result, err error) {
		d.mu.Lock()
		for _, t := range topics {
			if t.claimedTo == at && d.topics[t.name] == t {
				t.claimedTo = 0
				d.reindex(t)
			}
		}
		d.mu.Unlock()
		d.finish(m.waiters, rs, err)
	}
}

// NextDue returns the earliest time at which a job falls due for which somebody waits and
// nothing is claimed, as far as it is known; 0: there is none.
func (d *Dispatcher) NextDue() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.due) == 0 {
		return 0
	}
	return d.due[0].unclaimed
}

// claim takes waiters for the jobs that are due at now, and returns the topics.
func (d *Dispatcher) claim(now int64, ahead bool) (m match, due []*topic) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.due) > 0 && d.due[0].unclaimed <= now && !m.full() {
		t := heap.Pop(&d.due).(*topic)
		due = append(due, t)
		for jobs := t.dueBy(now); jobs > 0 && len(t.queue) > 0 && !m.full(); {
			w := t.queue[0].waiter
			d.take(w, now, &m)
			jobs -= int(w.Reserve.Max)
		}
	}
	for _, t := range due {
		if ahead {
			t.claimedTo = now
		}
		d.reindex(t) // until an Update reports what the Advance has moved
	}
	return m, due
}

// Stop ends all waits with ErrStopped. Reserves in flight still deliver.
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
	// No waiter is served any more, so the queues need no order.
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

// The methods below are called with d.mu held.

func (d *Dispatcher) topic(name string) *topic {
	t := d.topics[name]
	if t == nil {
		t = &topic{name: name, dueIndex: absent}
		d.topics[name] = t
	}
	return t
}

// forget drops t when it has neither jobs nor waiters, so that memory use follows live
// topics.
func (d *Dispatcher) forget(t *topic) {
	if t.idle() {
		delete(d.topics, t.name)
	}
}

// name gives w a place for each topic that it names, until it ends.
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

// enqueue puts w into the queues of its topics, in order of arrival: a waiter whose
// Reserve found nothing keeps its position.
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

// dequeue removes w from the queues of its topics.
func (d *Dispatcher) dequeue(w *Waiter) {
	for i := range w.places {
		p := &w.places[i]
		heap.Remove(&p.topic.queue, p.index)
		if len(p.topic.queue) == 0 {
			d.reindex(p.topic)
		}
	}
}

// reindex updates the position of t in the heap of due topics.
func (d *Dispatcher) reindex(t *topic) {
	t.unclaimed = t.firstUnclaimed()
	belongs := t.unclaimed != 0 && len(t.queue) > 0
	switch {
	case belongs && t.dueIndex == absent:
		heap.Push(&d.due, t)
	case belongs:
		heap.Fix(&d.due, t.dueIndex)
	case t.dueIndex != absent:
		heap.Remove(&d.due, t.dueIndex)
	}
}

// end removes w, which is in no queue, from everything else. The caller must call Done
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
