package dispatch

import (
	"container/heap"
	"errors"
	"sync"

	"tarry/job/jobpb"
)

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

// Waiters has the reserves that wait for the jobs of its sources, in order of arrival.
//
// Its lock is that of its sources too. It must not be held while submitting or while a waiter's
// Done runs.
type Waiters struct {
	tenant func(topic string) string // may be nil

	mu      sync.Mutex
	topics  map[string]*topic
	arrived uint64
	named   uint64               // waiters that have named their topics
	all     map[*Waiter]struct{} // that have not ended
	stopped bool
	limit   int
	busy    int      // waiters with a Reserve in flight
	places  int      // topics named by all waiters
	lending *Lending // nil if waiters are not lent
}

// NewWaiters returns room for at most limit waiters.
func NewWaiters(limit int) *Waiters {
	return &Waiters{limit: limit, topics: map[string]*topic{}, all: map[*Waiter]struct{}{}}
}

// Tenants makes the reserves that are proposed together be for topics of one tenant, so that the
// tenants can take turns where proposals wait. tenant must be cheap. It is called before the first
// Add.
func (ws *Waiters) Tenants(tenant func(topic string) string) { ws.tenant = tenant }

// tenantOf returns whose a topic is; empty: nobody's.
func (ws *Waiters) tenantOf(t *topic) string {
	if ws.tenant == nil {
		return ""
	}
	return ws.tenant(t.name)
}

// ErrFull is the error of a waiter past the bound on waiters.
var ErrFull = errors.New("too many reserves are waiting")

// Add registers a waiter. One with First is never too many: it does not wait, and its First
// must not fail because others do. It does not block. It passes the outcome to w.Done, which may
// be called before Add returns.
func (ws *Waiters) Add(w *Waiter) { ws.add(w, nil) }

// add registers a waiter. Its First and Advance are for the log of s.
func (ws *Waiters) add(w *Waiter, s *Source) {
	w.op = &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: w.Reserve}}
	ws.mu.Lock()
	full := len(w.First) == 0 && w.guest == nil && (len(ws.all) >= ws.limit || ws.places+len(w.Reserve.Topics) > placesPerWaiter*ws.limit)
	if ws.stopped || full {
		err := ErrFull
		if ws.stopped {
			err = ErrStopped
		}
		w.state = ended
		ws.mu.Unlock()
		w.Done(nil, err)
		return
	}
	ws.register(w)
	var ms []match
	if len(w.First) > 0 {
		ms = []match{s.matchFirst(w)}
	} else if ms = ws.match(servable(nil, w)); w.state == waiting {
		if m, ok := s.matchDue(w); ok {
			ms = append(ms, m)
		}
	}
	if ws.lending != nil {
		ms = append(ms, ws.lending.came(w)...)
	}
	nothing := w.Poll && w.state == waiting
	if nothing {
		ws.dequeue(w)
		ws.end(w)
	}
	ws.unlock(ms)
	if nothing {
		w.Done(nil, nil)
	}
}

// register puts w into the queues of its topics. It is called with the lock held.
func (ws *Waiters) register(w *Waiter) {
	ws.arrived++
	w.number = ws.arrived
	ws.all[w] = struct{}{}
	ws.places += len(w.Reserve.Topics)
	ws.name(w)
	ws.enqueue(w)
	if ws.lending != nil && w.guest == nil {
		ws.lending.own[w.number] = w
	}
}

// Alone reports whether the First of a waiter that was added are proposed without a Reserve,
// because there is no job for it.
func (ws *Waiters) Alone(w *Waiter) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.alone
}

// Cancel ends a wait. With keep, a Reserve in flight for w still delivers its jobs to
// Done: the wait is over, but the consumer is connected. Without keep, the consumer is
// gone and such jobs go back to their topics. Done is called once in either case.
func (ws *Waiters) Cancel(w *Waiter, keep bool) {
	ws.mu.Lock()
	idle := w.state == waiting
	var ms []match
	switch w.state {
	case waiting:
		ws.dequeue(w)
		ws.end(w)
		if ws.lending != nil {
			ms = ws.lending.settle(w.Reserve.Topics)
		}
	case busy:
		w.final = true
		w.gone = w.gone || !keep
	case lent:
		ws.lending.lender.Leave(w.number, keep)
	}
	ws.unlock(ms)
	if idle {
		w.Done(nil, nil)
	}
}

// unlock releases the lock, and does what must be done without it.
func (ws *Waiters) unlock(ms []match) {
	var after []func()
	if g := ws.lending; g != nil {
		after, g.after = g.after, nil
	}
	ws.mu.Unlock()
	for _, f := range after {
		f()
	}
	propose(ms)
}

// settle does what follows from a change of topics. It is called with the lock held; the caller
// must pass the result to unlock.
func (ws *Waiters) settle(topics []*topic) []match {
	if ws.lending == nil {
		return ws.match(topics)
	}
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.name
	}
	return ws.lending.settle(names)
}

// Stop ends all waits with ErrStopped. Reserves in flight still deliver.
func (ws *Waiters) Stop() {
	ws.mu.Lock()
	ws.stopped = true
	var idle []*Waiter
	for w := range ws.all {
		if w.state == waiting {
			idle = append(idle, w)
		} else {
			w.final = true
		}
	}
	// No waiter is served any more, so the queues need no order.
	for _, t := range ws.topics {
		t.queue, t.guests = nil, nil
		t.reindex()
	}
	for _, w := range idle {
		ws.end(w)
	}
	ws.mu.Unlock()
	for _, w := range idle {
		w.Done(nil, ErrStopped)
	}
}

// Waiting returns how many reserves wait or are being served.
func (ws *Waiters) Waiting() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all)
}

// The methods below are called with ws.mu held.

func (ws *Waiters) topic(name string) *topic {
	t := ws.topics[name]
	if t == nil {
		t = newTopic(name)
		ws.topics[name] = t
	}
	return t
}

// forget drops t when it has neither jobs nor waiters, so that memory use follows live
// topics.
func (ws *Waiters) forget(t *topic) {
	if t.idle() {
		delete(ws.topics, t.name)
	}
}

// name gives w a place for each topic that it names, until it ends.
func (ws *Waiters) name(w *Waiter) {
	ws.named++
	w.places = make([]place, 0, len(w.Reserve.Topics)) // it must not move: queues point into it
	for _, name := range w.Reserve.Topics {
		t := ws.topic(name)
		if t.namedBy == ws.named {
			continue // it names the topic twice
		}
		t.namedBy = ws.named
		t.names++
		w.places = append(w.places, place{waiter: w, topic: t, index: absent})
	}
}

// enqueue puts w into the queues of its topics, in order of arrival: a waiter whose
// Reserve found nothing keeps its position.
func (ws *Waiters) enqueue(w *Waiter) {
	w.state = waiting
	for i := range w.places {
		p := &w.places[i]
		heap.Push(p.queue(), p)
		if p.topic.waiting() == 1 {
			p.topic.reindex()
		}
	}
}

// dequeue removes w from the queues of its topics.
func (ws *Waiters) dequeue(w *Waiter) {
	for i := range w.places {
		p := &w.places[i]
		heap.Remove(p.queue(), p.index)
		if p.topic.waiting() == 0 {
			p.topic.reindex()
		}
	}
}

// end removes w, which is in no queue, from everything else. The caller must call Done
// after unlocking.
func (ws *Waiters) end(w *Waiter) {
	for _, p := range w.places {
		p.topic.names--
		ws.forget(p.topic)
	}
	w.places = nil
	w.state = ended
	ws.places -= len(w.Reserve.Topics)
	delete(ws.all, w)
	if ws.lending != nil {
		delete(ws.lending.own, w.number)
	}
}
