package lending

import (
	"maps"
	"slices"
	"strings"
)

const (
	maxWant  = 256  // jobs of one Want
	mostTold = 1024 // topics that a supplier knows, some of them without waiters
)

// Lender is one node's part in lending. Its methods must be called one at a time.
type Lender struct {
	room      Room
	suppliers []*supplier // the nodes to which this one lends, in order of their names
	homes     []*home     // the nodes that lend to this one
	loans     map[uint64]*loan
	turn      int

	// What the result must not depend on; the tests try all choices.
	hintsFirst func(topic string) bool // a waiter goes to a supplier with jobs even if there is one here
	begin      func(n int) int         // which of n nodes is asked first
}

// supplier is what a home knows of a supplier.
type supplier struct {
	name string
	told map[string]bool // topics in which it knows this node's interest
	most int             // of told, before those without waiters are forgotten
	hint map[string]int  // jobs for which it lacked waiters
}

// home is what a supplier knows of a home.
type home struct {
	name     string
	interest map[string]bool
	asked    map[string]int // jobs of the open Wants
	guests   map[uint64]bool
}

// loan is an own waiter that is lent.
type loan struct {
	to      *supplier
	leaving leaving
	poll    bool
	left    []*supplier // of a poll: to be asked after to
}

type leaving uint8

const (
	stays   leaving = iota
	expired         // its time is over; jobs on their way are still taken
	gone            // its consumer hung up
)

// New returns the Lender of a node that is connected with no other one.
func New(room Room) *Lender {
	l := &Lender{room: room, loans: map[uint64]*loan{}}
	l.hintsFirst = func(string) bool { return false }
	l.begin = func(n int) int {
		l.turn++
		return l.turn % n
	}
	return l
}

// Settle does all that follows from a change of topics: in their jobs, or in the waiters of their queues.
func (l *Lender) Settle(topics ...string) {
	var lent []string
	for _, t := range topics {
		if l.hintsFirst(t) {
			lent = append(lent, l.lendForHints(t)...)
		}
	}
	l.room.Match(topics)
	for _, t := range topics {
		lent = append(lent, l.lendForHints(t)...)
	}
	for _, t := range append(lent, topics...) {
		l.returnGuests(t)
		l.tell(t)
		l.ask(t)
	}
}

// lendForHints lends the waiters of t to suppliers that lacked some. It returns all topics of
// these waiters.
func (l *Lender) lendForHints(t string) (topics []string) {
	for _, s := range l.suppliers {
		for s.hint[t] > 0 {
			w, ok := l.room.First(t)
			if !ok {
				return topics
			}
			of, n := l.lend(s, w)
			lower(s.hint, t, n)
			topics = append(topics, of...)
		}
	}
	return topics
}

// lend lends an own waiter, which is in its queues.
func (l *Lender) lend(s *supplier, w uint64) (topics []string, jobs int) {
	topics, jobs = l.room.Reserve(w)
	l.room.Remove(w)
	l.loans[w] = &loan{to: s}
	l.room.Send(s.name, Message{Kind: Lend, Waiter: w})
	return topics, jobs
}

// returnGuests returns those that wait for t and for which there is no job now or soon.
func (l *Lender) returnGuests(t string) {
	if l.hasJobs(t) {
		return
	}
	for g, topics := range l.room.Guests(t) {
		if !slices.ContainsFunc(topics, l.hasJobs) {
			l.returnGuest(g, true)
		}
	}
}

// returnGuest ends the wait of a guest, now or after the Reserve under way for it.
func (l *Lender) returnGuest(g Guest, keep bool) (topics []string) {
	topics, gone := l.room.CancelGuest(g, keep)
	if gone {
		l.end(g, Message{Kind: Returned})
	}
	return topics
}

func (l *Lender) hasJobs(t string) bool { return l.room.Free(t) > 0 || l.room.Soon(t) > 0 }

// tell tells each supplier once that this node has waiters of t.
func (l *Lender) tell(t string) {
	if _, ok := l.room.First(t); !ok {
		return
	}
	for _, s := range l.suppliers {
		if !s.told[t] {
			s.told[t] = true
			l.room.Send(s.name, Message{Kind: Interest, Topic: t})
		}
		if len(s.told) > s.most {
			l.tidy(s)
		}
	}
}

// tidy forgets the topics of which there are no waiters any more, once they are the most of those that a
// supplier knows.
func (l *Lender) tidy(s *supplier) {
	for _, t := range sortedKeys(s.told) {
		l.Forget(t)
	}
	s.most = max(mostTold, 2*len(s.told))
}

// ask asks homes, in turn, for waiters of t that this node needs and has not asked for yet.
func (l *Lender) ask(t string) {
	need := l.room.Free(t) + max(0, l.room.Soon(t)-l.room.Waiting(t))
	for _, h := range l.homes {
		need -= h.asked[t]
	}
	if need <= 0 || len(l.homes) == 0 {
		return
	}
	first := l.begin(len(l.homes))
	for i := range l.homes {
		h := l.homes[(first+i)%len(l.homes)]
		if need <= 0 || !h.interest[t] || h.asked[t] > 0 {
			continue
		}
		n := min(need, maxWant)
		h.asked[t] = n
		need -= n
		l.room.Send(h.name, Message{Kind: Want, Topic: t, N: n})
	}
}

// Poll lends an own waiter that does not wait, and for which there is no job here: to each supplier in
// turn, first to those that lacked waiters. It must be in its queues. It ends when all have
// returned it.
func (l *Lender) Poll(w uint64) {
	topics, _ := l.room.Reserve(w)
	l.room.Remove(w)
	var hinted, others []*supplier
	for _, s := range l.suppliers {
		if slices.ContainsFunc(topics, func(t string) bool { return s.hint[t] > 0 }) {
			hinted = append(hinted, s)
		} else {
			others = append(others, s)
		}
	}
	l.pollNext(w, &loan{poll: true, left: append(hinted, others...)})
}

func (l *Lender) pollNext(w uint64, p *loan) {
	if len(p.left) == 0 || p.leaving != stays {
		delete(l.loans, w)
		l.room.End(w)
		return
	}
	p.to, p.left = p.left[0], p.left[1:]
	l.loans[w] = p
	l.room.Send(p.to.name, Message{Kind: Lend, Waiter: w, Poll: true})
}

// Lends reports whether there is a node to lend to.
func (l *Lender) Lends() bool { return len(l.suppliers) > 0 }

// Lent reports whether an own waiter is lent. Then Leave ends its wait.
func (l *Lender) Lent(w uint64) bool { return l.loans[w] != nil }

// Leave asks for the end of a lend because its waiter's time is over (keep) or its consumer has hung up.
func (l *Lender) Leave(w uint64, keep bool) {
	p := l.loans[w]
	if p == nil {
		return
	}
	if keep && p.leaving == stays {
		p.leaving = expired
	} else if !keep {
		p.leaving = gone
	}
	l.room.Send(p.to.name, Message{Kind: Cancel, Waiter: w, Keep: keep})
}

// GuestEnded reports that a guest is in no queue any more, and that no Reserve is under way for it: with jobs,
// or with nil. Its topics must be settled afterwards.
func (l *Lender) GuestEnded(g Guest, topics []string, jobs any) {
	if jobs == nil {
		l.end(g, Message{Kind: Returned})
		return
	}
	var more []string
	for _, t := range topics {
		if l.room.Free(t) > 0 {
			more = append(more, t)
		}
	}
	l.end(g, Message{Kind: Granted, Jobs: jobs, More: more})
}

// end answers a Lend.
func (l *Lender) end(g Guest, m Message) {
	h := named(l.homes, g.Home)
	if h == nil || !h.guests[g.Waiter] {
		return
	}
	delete(h.guests, g.Waiter)
	m.Waiter = g.Waiter
	l.room.Send(g.Home, m)
}

// lower takes n from a count, which is forgotten at 0.
func lower(counts map[string]int, t string, n int) {
	if counts[t] -= n; counts[t] <= 0 {
		delete(counts, t)
	}
}

func (s *supplier) node() string { return s.name }
func (h *home) node() string     { return h.name }

// named returns the element of a node; nil: there is none.
func named[T interface {
	comparable
	node() string
}](all []T, name string) (none T) {
	for _, x := range all {
		if x.node() == name {
			return x
		}
	}
	return none
}

// without returns all but the element of a node.
func without[T interface{ node() string }](all []T, name string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return x.node() == name })
}

// with returns all and x, in order of their names.
func with[T interface{ node() string }](all []T, x T) []T {
	all = append(slices.Clone(all), x)
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.node(), b.node()) })
	return all
}

// sortedKeys makes what is sent, and in which order, follow from the events alone.
func sortedKeys[K string | uint64, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Known returns how many topics this node and others remember of each other.
func (l *Lender) Known() (n int) {
	for _, s := range l.suppliers {
		n += len(s.told)
	}
	for _, h := range l.homes {
		n += len(h.interest)
	}
	return n
}
