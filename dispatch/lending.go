package dispatch

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	"tarry/dispatch/lending"
	"tarry/job"
	"tarry/job/jobpb"
)

// Lending lets the waiters of this node get jobs of groups that other nodes lead, and waiters of
// other nodes those of this one. Package lending decides; this type does it, with the lock of
// Waiters held.
type Lending struct {
	waiters  *Waiters
	lender   *lending.Lender
	send     Send
	giveBack func([]*jobpb.Reserved)

	// Guarded by the lock of waiters.
	own    map[uint64]*Waiter // by number
	guests map[lending.Guest]*Waiter
	ms     []match  // of the settling that is under way
	after  []func() // to be called without the lock
}

// Send sends a message to another node, with what a waiter asks for if it is a Lend. It must not block,
// and reports whether there is a stream to that node.
type Send func(node string, m lending.Message, r *jobpb.Reserve) bool

// Lend makes the waiters of ws be lent. It is called before the first is added. giveBack releases jobs
// that no consumer received; it must not block.
func (ws *Waiters) Lend(send Send, giveBack func([]*jobpb.Reserved)) *Lending {
	g := &Lending{waiters: ws, send: send, giveBack: giveBack, own: map[uint64]*Waiter{}, guests: map[lending.Guest]*Waiter{}}
	g.lender = lending.New(room{g})
	ws.lending = g
	return g
}

// OpenSupplier reports a stream to another node, CloseSupplier its end.
func (g *Lending) OpenSupplier(node string) { g.do(func() { g.lender.OpenSupplier(node) }) }

// CloseSupplier ends a stream to another node.
func (g *Lending) CloseSupplier(node string) { g.do(func() { g.lender.CloseSupplier(node) }) }

// OpenHome reports a stream of another node, CloseHome its end.
func (g *Lending) OpenHome(node string) { g.do(func() { g.lender.OpenHome(node) }) }

// CloseHome ends a stream of another node.
func (g *Lending) CloseHome(node string) { g.do(func() { g.lender.CloseHome(node) }) }

// Receive takes a message of another node. Jobs of a Granted are a Got.
func (g *Lending) Receive(node string, m lending.Message) {
	g.do(func() { g.lender.Receive(node, m) })
}

// Admit takes a Lend of another node. An error must end its stream.
func (g *Lending) Admit(node string, m lending.Message, r *jobpb.Reserve) (err error) {
	id := lending.Guest{Home: node, Waiter: m.Waiter}
	g.do(func() {
		if g.guests[id] != nil {
			err = fmt.Errorf("waiter %d of %s waits already", m.Waiter, node)
			return
		}
		if len(g.guests) >= g.waiters.limit {
			err = ErrFull
			return
		}
		w := &Waiter{Reserve: r, Poll: m.Poll, guest: &id}
		w.op = &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: r}}
		w.Done = func(jobs []*jobpb.Reserved, err error) { g.guestDone(id, w, Got{jobs, err}) }
		g.guests[id] = w
		g.waiters.register(w)
		if !g.lender.Admit(id, r.Topics, m.Poll) {
			room{g}.drop(id, w)
			err = fmt.Errorf("waiter %d of %s came without a stream", m.Waiter, node)
		}
	})
	return err
}

// do calls f with the lock, and then does what f has made necessary.
func (g *Lending) do(f func()) {
	g.waiters.mu.Lock()
	f()
	ms := g.ms
	g.ms = nil
	g.waiters.unlock(ms)
}

// guestDone is the Done of a guest.
func (g *Lending) guestDone(id lending.Guest, w *Waiter, o Got) {
	g.do(func() {
		switch {
		case g.guests[id] != w: // its stream broke
			g.release(o)
		case len(o.Jobs) > 0 || refused(o.Err):
			delete(g.guests, id)
			g.lender.GuestEnded(id, w.Reserve.Topics, o)
		default: // its home has it back, also if this node does not lead any more
			delete(g.guests, id)
			g.lender.GuestEnded(id, w.Reserve.Topics, nil)
		}
		g.lender.Settle(w.Reserve.Topics...)
	})
}

// refused reports whether an error is the state machine's, and would be that of each attempt.
func refused(err error) bool {
	_, ok := errors.AsType[*job.Error](err)
	return ok
}

// The methods below are called with the lock held.

func (g *Lending) release(o Got) {
	if len(o.Jobs) > 0 {
		g.after = append(g.after, func() { g.giveBack(o.Jobs) })
	}
}

// settle does what follows from a change of topics, and returns what is to be proposed.
func (g *Lending) settle(topics []string) []match {
	g.lender.Settle(topics...)
	ms := g.ms
	g.ms = nil
	return ms
}

// polls reports whether an own waiter that does not wait, and for which there is no job here, shall ask other nodes.
func (g *Lending) polls(w *Waiter) bool {
	return g != nil && w.guest == nil && !w.Stay && len(w.First) == 0 && g.lender.Lends()
}

// came does what follows from an own waiter that has come to its queues, unless it was served.
func (g *Lending) came(w *Waiter) []match {
	if w.Poll && w.state == waiting {
		g.waiters.matchAll(&g.ms, w)
		if w.state == waiting && g.polls(w) {
			g.lender.Poll(w.number)
		}
	}
	return g.settle(w.Reserve.Topics)
}

// matchAll serves the waiters of the topics of w.
func (ws *Waiters) matchAll(ms *[]match, w *Waiter) {
	*ms = append(*ms, ws.match(servable(nil, w))...)
}

// room is how the Lender sees the dispatcher.
type room struct{ *Lending }

func (r room) topic(name string) *topic { return r.waiters.topics[name] }

// Match implements lending.Room.
func (r room) Match(topics []string) {
	var ts []*topic
	for _, name := range topics {
		if t := r.topic(name); t != nil {
			ts = append(ts, t)
		}
	}
	r.ms = append(r.ms, r.waiters.match(ts)...)
}

// Free implements lending.Room.
func (r room) Free(name string) (n int) {
	t := r.topic(name)
	if t == nil {
		return 0
	}
	for p := &t.supply; p != nil; p = p.next {
		n += int(p.free())
	}
	return n
}

// Soon implements lending.Room. What falls due is asked for once it is ready.
func (r room) Soon(string) int { return 0 }

// Waiting implements lending.Room.
func (r room) Waiting(name string) int {
	if t := r.topic(name); t != nil {
		return t.waiting()
	}
	return 0
}

// First implements lending.Room.
func (r room) First(name string) (uint64, bool) {
	t := r.topic(name)
	if t == nil || len(t.queue) == 0 {
		return 0, false
	}
	first := t.queue[0].waiter
	if first.Stay {
		first = nil
		for _, p := range t.queue { // they are few
			if w := p.waiter; !w.Stay && (first == nil || w.number < first.number) {
				first = w
			}
		}
	}
	if first == nil {
		return 0, false
	}
	return first.number, true
}

// Reserve implements lending.Room.
func (r room) Reserve(waiter uint64) ([]string, int) {
	w := r.own[waiter]
	return w.Reserve.Topics, int(w.Reserve.Max)
}

// Topics implements lending.Room.
func (r room) Topics() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, t := range r.waiters.topics {
			if len(t.queue) > 0 && !yield(name) {
				return
			}
		}
	}
}

// Remove implements lending.Room.
func (r room) Remove(waiter uint64) {
	w := r.own[waiter]
	r.waiters.dequeue(w)
	w.state = lent
}

// Requeue implements lending.Room.
func (r room) Requeue(waiter uint64) {
	w := r.own[waiter]
	if w.final || r.waiters.stopped {
		r.finish(w, Got{Err: ErrStopped})
		return
	}
	r.waiters.enqueue(w)
}

// Deliver implements lending.Room.
func (r room) Deliver(waiter uint64, jobs any) { r.finish(r.own[waiter], jobs.(Got)) }

// End implements lending.Room.
func (r room) End(waiter uint64) {
	o := Got{}
	if r.waiters.stopped {
		o.Err = ErrStopped
	}
	r.finish(r.own[waiter], o)
}

func (r room) finish(w *Waiter, o Got) {
	r.waiters.end(w)
	r.after = append(r.after, func() { w.Done(o.Jobs, o.Err) })
}

// Release implements lending.Room.
func (r room) Release(jobs any) { r.release(jobs.(Got)) }

// Guests implements lending.Room.
func (r room) Guests(name string) iter.Seq2[lending.Guest, []string] {
	return func(yield func(lending.Guest, []string) bool) {
		t := r.topic(name)
		if t == nil {
			return
		}
		for _, p := range slices.Clone(t.guests) {
			if w := p.waiter; w.state == waiting && !yield(*w.guest, w.Reserve.Topics) {
				return
			}
		}
	}
}

// CancelGuest implements lending.Room.
func (r room) CancelGuest(id lending.Guest, keep bool) ([]string, bool) {
	w := r.guests[id]
	if w.state == waiting {
		r.drop(id, w)
		return w.Reserve.Topics, true
	}
	w.final = true
	w.gone = w.gone || !keep
	return w.Reserve.Topics, false
}

// AbandonGuest implements lending.Room.
func (r room) AbandonGuest(id lending.Guest) []string {
	w := r.guests[id]
	if w.state == waiting {
		r.drop(id, w)
	}
	w.final, w.gone = true, true
	delete(r.guests, id)
	return w.Reserve.Topics
}

// drop removes a guest from its queues.
func (r room) drop(id lending.Guest, w *Waiter) {
	r.waiters.dequeue(w)
	r.waiters.end(w)
	delete(r.guests, id)
}

// Send implements lending.Room.
func (r room) Send(node string, m lending.Message) {
	var reserve *jobpb.Reserve
	if m.Kind == lending.Lend {
		reserve = proto.CloneOf(r.own[m.Waiter].Reserve) // it may be sent after its caller has returned
	}
	if !r.send(node, m, reserve) && m.Kind == lending.Granted {
		r.release(m.Jobs.(Got))
	}
}
