package groupcommit

import (
	"slices"
	"time"
)

// turns is what waits in a Batcher. The requests of one tenant are in the order of arrival.
// The tenants take turns by bytes, as in deficit round robin: so in a batch that is full each
// has its share, however many requests of others wait. Requests without a tenant are those of
// one tenant. While only one tenant has requests it is a plain queue.
//
// A request costs O(1), whatever waits. The methods are called with the mutex of the Batcher
// held.
type turns struct {
	none     lane             // of the requests without a tenant
	lanes    map[string]*lane // of the tenants that have requests
	current  *lane            // whose turn it is, in a ring; nil: nothing waits
	requests int
	bytes    int // of operations
	callers  int // of all requests
}

// lane is the queue of one tenant.
type lane struct {
	tenant     string
	requests   []*Request // those from head on
	head       int
	bytes      int
	credit     int  // bytes that it may still take in this turn
	began      bool // its turn, with the credit for it
	prev, next *lane
}

// turnBytes is the credit for a turn: small enough that a batch has many turns.
const turnBytes = 8 << 10

func (l *lane) waiting() []*Request { return l.requests[l.head:] }

// add queues a request.
func (q *turns) add(r *Request) {
	l := q.lane(r.Tenant)
	l.requests = append(l.requests, r)
	l.bytes += len(r.Ops)
	q.counted(r, 1)
}

func (q *turns) counted(r *Request, sign int) {
	q.requests += sign
	q.bytes += sign * len(r.Ops)
	q.callers += sign * r.Callers
}

// find returns the lane of a tenant; nil: it has no requests.
func (q *turns) find(tenant string) *lane {
	if tenant == "" {
		return &q.none
	}
	return q.lanes[tenant]
}

// lane returns the lane of a tenant, in the ring: at its end if it was not there.
func (q *turns) lane(tenant string) *lane {
	l := q.find(tenant)
	if l == nil {
		if q.lanes == nil {
			q.lanes = make(map[string]*lane)
		}
		l = &lane{tenant: tenant}
		q.lanes[tenant] = l
	}
	switch {
	case l.next != nil:
	case q.current == nil:
		l.prev, l.next = l, l
		q.current = l
	default:
		l.prev, l.next = q.current.prev, q.current
		l.prev.next, l.next.prev = l, l
	}
	return l
}

// leave takes a lane without requests out of the ring.
func (q *turns) leave(l *lane) {
	if q.current == l {
		q.current = l.next
	}
	if l.next == l {
		q.current = nil
	}
	l.prev.next, l.next.prev = l.next, l.prev
	l.prev, l.next, l.credit, l.began = nil, nil, 0, false
	if l != &q.none {
		delete(q.lanes, l.tenant)
	}
}

// pop removes the first request of a lane.
func (q *turns) pop(l *lane) *Request {
	r := l.requests[l.head]
	l.requests[l.head] = nil
	l.head++
	l.bytes -= len(r.Ops)
	q.counted(r, -1)
	if 2*l.head >= len(l.requests) {
		n := copy(l.requests, l.requests[l.head:])
		clear(l.requests[n:])
		l.requests, l.head = l.requests[:n], 0
	}
	return r
}

// take removes requests of at most so many bytes, or one, and calls f with each.
func (q *turns) take(most int, f func(*Request)) {
	size := 0
	for q.current != nil {
		l := q.current
		if !l.began {
			l.began = true
			l.credit += turnBytes
		}
		for alone := l.next == l; len(l.waiting()) > 0; {
			cost := len(l.waiting()[0].Ops)
			if size > 0 && size+cost > most {
				return // the turn goes on in the next batch
			}
			if alone {
				l.credit = cost
			}
			if l.credit < cost {
				break
			}
			l.credit -= cost
			size += cost
			f(q.pop(l))
		}
		if len(l.waiting()) == 0 {
			q.leave(l)
			continue
		}
		l.began = false
		q.current = l.next
	}
}

// each calls f with every lane that has requests. f must not change the ring.
func (q *turns) each(f func(*lane)) {
	if q.current == nil {
		return
	}
	for l, more := q.current, true; more; more = l != q.current {
		f(l)
		l = l.next
	}
}

// remove removes the requests that f selects, and returns them.
func (q *turns) remove(f func(*Request) bool) (removed []*Request) {
	var empty []*lane
	q.each(func(l *lane) {
		kept := l.requests[:0]
		for _, r := range l.waiting() {
			if !f(r) {
				kept = append(kept, r)
				continue
			}
			removed = append(removed, r)
			l.bytes -= len(r.Ops)
			q.counted(r, -1)
		}
		clear(l.requests[len(kept):])
		l.requests, l.head = kept, 0
		if len(kept) == 0 {
			empty = append(empty, l)
		}
	})
	for _, l := range empty {
		q.leave(l)
	}
	return removed
}

// removeOverdue removes the requests at the front of each lane whose deadline is over.
func (q *turns) removeOverdue(now time.Time) (overdue []*Request) {
	var empty []*lane
	q.each(func(l *lane) {
		for len(l.waiting()) > 0 && !l.waiting()[0].Deadline.After(now) {
			overdue = append(overdue, q.pop(l))
		}
		if len(l.waiting()) == 0 {
			empty = append(empty, l)
		}
	})
	for _, l := range empty {
		q.leave(l)
	}
	return overdue
}

// putBack puts the requests of a batch back to the front of their lanes, in their order.
func (q *turns) putBack(batch []*Request) {
	of := make(map[string][]*Request)
	for _, r := range batch {
		of[r.Tenant] = append(of[r.Tenant], r)
	}
	for _, r := range batch {
		if rs := of[r.Tenant]; rs != nil {
			l := q.lane(r.Tenant)
			l.requests, l.head = slices.Concat(rs, l.waiting()), 0
			delete(of, r.Tenant)
		}
		q.lane(r.Tenant).bytes += len(r.Ops)
		q.counted(r, 1)
	}
}

// full reports whether the bounds on what waits exclude a request. Above them a tenant of which
// little waits is still let in, so that another one cannot shut it out. All together never take
// more than twice the bounds.
func (q *turns) full(r *Request) bool {
	over := func(times int) bool {
		return q.bytes+len(r.Ops) > times*MaxQueuedBytes || q.requests >= times*maxQueuedRequests
	}
	if !over(1) {
		return false
	}
	l := q.find(r.Tenant)
	little := len(r.Ops) <= littleBytes && (l == nil || l.bytes+len(r.Ops) <= littleBytes && len(l.waiting()) < littleRequests)
	return !little || over(2)
}
