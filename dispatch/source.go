package dispatch

import (
	"container/heap"

	"tarry/job/jobpb"
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

// Source has the jobs of one Raft group that this node leads, by topic. Its proposals go to the log
// of that group.
type Source struct {
	waiters *Waiters
	submit  Submit
	deliver func([]*jobpb.Reserved) // observer of the reserved jobs

	// Guarded by the lock of waiters.
	due    dueSupplies // those with waiters in the queue of their topic and a due time
	closed bool
}

// Open adds a source of jobs. deliver, if not nil, is called with every list of jobs that a waiter
// gets of it.
func (ws *Waiters) Open(submit Submit, deliver func([]*jobpb.Reserved)) *Source {
	if deliver == nil {
		deliver = func([]*jobpb.Reserved) {}
	}
	return &Source{waiters: ws, submit: submit, deliver: deliver}
}

// Close takes the jobs of s away from the waiters, because this node does not lead its group any
// more. Reserves in flight still deliver; if they find nothing their waiters go on to wait for the
// jobs of other sources. Nothing but the outcomes of its proposals may be reported to s afterwards.
func (s *Source) Close() {
	ws := s.waiters
	ws.mu.Lock()
	s.closed = true
	s.due = nil
	var touched []*topic
	for _, t := range ws.topics {
		if p := t.of(s); p != nil {
			*p = supply{topic: t, dueIndex: absent, next: p.next}
			ws.forget(t)
			touched = append(touched, t)
		}
	}
	ws.unlock(ws.settle(touched))
}

// Update records what a batch changed and assigns the jobs that became ready. It must be
// called in log order and does not block.
func (s *Source) Update(changes []Update) {
	ws := s.waiters
	ws.mu.Lock()
	if s.closed {
		ws.mu.Unlock()
		return
	}
	var touched []*topic
	for _, c := range changes {
		t := ws.topic(c.Topic)
		p := t.bind(s)
		p.ready, p.held, p.nextDue, p.soon = c.Ready, c.Held, c.NextDue, c.Soon
		p.reindex()
		if ws.lending != nil || t.offer() != nil {
			touched = append(touched, t)
		}
		ws.forget(t)
	}
	ws.unlock(ws.settle(touched))
}

// Prime is Update for topics that no Update has named yet: a new leader sets the hook for
// updates first, and then primes with the earlier state.
func (s *Source) Prime(all []Update) {
	ws := s.waiters
	ws.mu.Lock()
	fresh := all[:0:0]
	for _, c := range all {
		if t := ws.topics[c.Topic]; t == nil || t.of(s) == nil {
			fresh = append(fresh, c)
		}
	}
	ws.mu.Unlock()
	s.Update(fresh)
}

// Claim takes waiters for the jobs that are due at now (Unix ms) and returns their
// Reserves, for the caller to propose in the same entry as the Advance. It claims no more
// jobs than are known to be due, so none of the Reserves is empty. The caller must pass
// the results of exactly these ops to done.
func (s *Source) Claim(now int64) (ops []*jobpb.Op, done func([]*jobpb.Result, error)) {
	m, _ := s.claim(now, false)
	if len(m.ops) == 0 {
		return nil, nil
	}
	return m.ops, func(rs []*jobpb.Result, err error) { s.finish(m.waiters, rs, err) }
}

// ClaimAhead is Claim for an advance that will take effect at an instant. What is due up to
// then is not claimed again until done was called.
func (s *Source) ClaimAhead(at int64) (reserves []*jobpb.Reserve, done func([]*jobpb.Result, error)) {
	m, due := s.claim(at, true)
	if len(m.ops) == 0 {
		return nil, nil
	}
	for _, op := range m.ops {
		reserves = append(reserves, op.GetReserve())
	}
	return reserves, func(rs []*jobpb.Result, err error) {
		s.waiters.mu.Lock()
		for _, p := range due {
			if p.source == s && p.claimedTo == at && s.waiters.topics[p.topic.name] == p.topic {
				p.claimedTo = 0
				p.reindex()
			}
		}
		s.waiters.mu.Unlock()
		s.finish(m.waiters, rs, err)
	}
}

// NextDue returns the earliest time at which a job falls due for which somebody waits and
// nothing is claimed, as far as it is known; 0: there is none.
func (s *Source) NextDue() int64 {
	s.waiters.mu.Lock()
	defer s.waiters.mu.Unlock()
	if len(s.due) == 0 {
		return 0
	}
	return s.due[0].unclaimed
}

// claim takes waiters for the jobs that are due at now, and returns what was due.
func (s *Source) claim(now int64, ahead bool) (m match, due []*supply) {
	s.waiters.mu.Lock()
	defer s.waiters.mu.Unlock()
	for len(s.due) > 0 && s.due[0].unclaimed <= now && !m.full() {
		p := heap.Pop(&s.due).(*supply)
		due = append(due, p)
		for jobs := p.dueBy(now); jobs > 0 && p.topic.waiting() > 0 && !m.full(); {
			w := p.topic.first()
			s.take(w, now, &m)
			jobs -= int(w.Reserve.Max)
		}
	}
	for _, p := range due {
		if ahead {
			p.claimedTo = now
		}
		p.reindex() // until an Update reports what the Advance has moved
	}
	return m, due
}
