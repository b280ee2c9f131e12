package lending

import "slices"

// OpenSupplier begins a stream to a supplier. A stream of before must have been closed.
func (l *Lender) OpenSupplier(name string) {
	l.suppliers = with(l.suppliers, &supplier{name: name, told: map[string]bool{}, most: mostTold, hint: map[string]int{}})
	for t := range l.room.Topics() {
		l.tell(t)
	}
}

// CloseSupplier ends a stream to a supplier. Its waiters are at home again.
func (l *Lender) CloseSupplier(name string) {
	s := named(l.suppliers, name)
	if s == nil {
		return
	}
	l.suppliers = without(l.suppliers, name)
	for _, w := range sortedKeys(l.loans) {
		p := l.loans[w]
		p.left = slices.DeleteFunc(p.left, func(x *supplier) bool { return x == s })
		if p.to == s {
			l.back(w, p)
		}
	}
}

// OpenHome begins the stream of a home. A stream of before must have been closed.
func (l *Lender) OpenHome(name string) {
	l.homes = with(l.homes, &home{name: name, interest: map[string]bool{}, asked: map[string]int{}, guests: map[uint64]bool{}})
}

// CloseHome ends the stream of a home. Its guests are gone, and jobs that they still get are given back.
func (l *Lender) CloseHome(name string) {
	h := named(l.homes, name)
	if h == nil {
		return
	}
	l.homes = without(l.homes, name)
	topics := sortedKeys(h.asked)
	for _, w := range sortedKeys(h.guests) {
		topics = append(topics, l.room.AbandonGuest(Guest{name, w})...)
	}
	l.Settle(topics...)
}

// Receive takes what a supplier or a home has sent. A Lend is taken by Admit.
func (l *Lender) Receive(from string, m Message) {
	switch m.Kind {
	case Interest, Done, Cancel:
		if h := named(l.homes, from); h != nil {
			l.receiveFromHome(h, m)
		}
	case Want, Granted, Returned:
		if s := named(l.suppliers, from); s != nil {
			l.receiveFromSupplier(s, m)
		} else if m.Jobs != nil {
			l.room.Release(m.Jobs)
		}
	}
}

func (l *Lender) receiveFromHome(h *home, m Message) {
	switch m.Kind {
	case Interest:
		h.interest[m.Topic] = true
		l.Settle(m.Topic)
	case Done:
		delete(h.asked, m.Topic)
		if m.Short {
			delete(h.interest, m.Topic)
		}
		l.Settle(m.Topic)
	case Cancel:
		if h.guests[m.Waiter] {
			l.Settle(l.returnGuest(Guest{h.name, m.Waiter}, m.Keep)...)
		}
	}
}

// Admit reports that a Lend has come from a home, and that the room has the guest in its queues. It
// returns false if its home has broken the rules, because the guest is here already.
func (l *Lender) Admit(g Guest, topics []string, poll bool) bool {
	h := named(l.homes, g.Home)
	if h == nil || h.guests[g.Waiter] {
		return false
	}
	h.guests[g.Waiter] = true
	if poll {
		l.room.Match(topics)
		l.returnGuest(g, true)
	}
	l.Settle(topics...)
	return true
}

func (l *Lender) receiveFromSupplier(s *supplier, m Message) {
	p := l.loans[m.Waiter]
	if p != nil && p.to != s {
		p = nil
	}
	switch m.Kind {
	case Want:
		l.serve(s, m.Topic, m.N)
	case Returned:
		if p == nil {
			return
		}
		topics, _ := l.room.Reserve(m.Waiter)
		for _, t := range topics {
			delete(s.hint, t)
		}
		l.back(m.Waiter, p)
	case Granted:
		for _, t := range m.More {
			s.hint[t] = max(s.hint[t], 1)
		}
		if p == nil || p.leaving == gone {
			l.room.Release(m.Jobs)
		}
		if p != nil {
			delete(l.loans, m.Waiter)
			if p.leaving == gone {
				l.room.End(m.Waiter)
			} else {
				l.room.Deliver(m.Waiter, m.Jobs)
			}
		}
		l.Settle(m.More...)
	}
}

// serve lends waiters of t for n jobs, and answers the want.
func (l *Lender) serve(s *supplier, t string, n int) {
	var lent []string
	for n > 0 {
		w, ok := l.room.First(t)
		if !ok {
			break
		}
		topics, jobs := l.lend(s, w)
		lent = append(lent, topics...)
		n -= jobs
	}
	if n > 0 {
		s.hint[t] = n
		delete(s.told, t)
	}
	l.room.Send(s.name, Message{Kind: Done, Topic: t, Short: n > 0})
	l.Settle(lent...)
}

// back ends a lend without jobs.
func (l *Lender) back(w uint64, p *loan) {
	if p.poll {
		l.pollNext(w, p)
		return
	}
	delete(l.loans, w)
	if p.leaving != stays {
		l.room.End(w)
		return
	}
	topics, _ := l.room.Reserve(w)
	l.room.Requeue(w)
	l.Settle(topics...)
}

// Forget tells the suppliers that this node has no waiter of a topic any more, so that neither side need
// remember it. It does nothing if there is one.
func (l *Lender) Forget(t string) {
	if _, ok := l.room.First(t); ok {
		return
	}
	for _, s := range l.suppliers {
		delete(s.hint, t)
		if s.told[t] {
			delete(s.told, t)
			l.room.Send(s.name, Message{Kind: Done, Topic: t, Short: true})
		}
	}
}
