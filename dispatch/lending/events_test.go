package lending

import (
	"fmt"
	"slices"
)

// event is one thing that may happen next. An inner one happens in the end without any cause from
// outside.
type event struct {
	inner bool
	node  int // whose Lender it concerns
	do    func(*world)
	label string
	args  []any
}

func (e event) String() string { return fmt.Sprintf(e.label, e.args...) }

type (
	adder        func(node int, do func(*world), label string, args ...any)
	boundedAdder func(budget int8, node int, do func(*world), label string, args ...any)
)

// events returns all that may happen next.
func (w *world) events() (all []event) {
	inner := func(node int, do func(*world), label string, args ...any) {
		all = append(all, event{true, node, do, label, args})
	}
	outer := func(budget int8, node int, do func(*world), label string, args ...any) {
		if budget > 0 {
			all = append(all, event{false, node, do, label, args})
		}
	}
	w.streamEvents(inner, outer)
	for k := range w.reserves {
		inner(int(w.reserves[k].node), func(w *world) { w.commit(k) }, "a reserve for waiter %d commits in group %d", w.reserves[k].waiter, w.reserves[k].group)
	}
	for g := range w.c.groups {
		for n := range w.c.nodes {
			switch is := int(w.leader[g]) == n; {
			case is && !w.leads[n][g]:
				inner(n, func(w *world) { w.leads[n][g] = true; w.settleAll(n) }, "n%d leads group %d", n, g)
			case !is && w.leads[n][g]:
				for _, unseen := range []bool{false, true} {
					inner(n, func(w *world) { w.depose(n, g, unseen) }, "n%d learns that it does not lead group %d; its reserves commit: %v", n, g, unseen)
				}
			case !is:
				outer(w.moves, n, func(w *world) { w.moves--; w.leader[g] = int8(n) }, "group %d elects n%d", g, n)
			}
		}
	}
	w.jobEvents(inner, outer)
	w.waiterEvents(outer)
	for n := range w.c.nodes {
		for _, unseen := range []bool{false, true} {
			outer(w.crashes, n, func(w *world) { w.crashes--; w.crash(n, unseen) }, "n%d crashes; its reserves commit: %v", n, unseen)
		}
	}
	return all
}

func (w *world) streamEvents(inner adder, outer boundedAdder) {
	for h := range w.c.nodes {
		for s := range w.c.nodes {
			if h == s {
				continue
			}
			x := &w.streams[h][s]
			if x.homeStale {
				inner(h, func(w *world) {
					w.streams[h][s].homeStale = false
					w.lenders[h].CloseSupplier(nodeNames[s])
					w.lenders[h].OpenSupplier(nodeNames[s])
				}, "n%d notices that its stream to n%d broke", h, s)
			}
			if x.suppStale {
				inner(s, func(w *world) {
					w.streams[h][s].suppStale = false
					w.lenders[s].CloseHome(nodeNames[h])
					w.lenders[s].OpenHome(nodeNames[h])
				}, "n%d notices that the stream of n%d broke", s, h)
			}
			if len(x.up) > 0 && !x.suppStale {
				inner(s, func(w *world) { w.arriveUp(h, s) }, "n%d gets of home n%d: %v", s, h, x.up[0])
			}
			if len(x.down) > 0 && !x.homeStale {
				inner(h, func(w *world) {
					x := &w.streams[h][s]
					m := x.down[0]
					x.down = x.down[1:]
					w.lenders[h].Receive(nodeNames[s], m)
				}, "n%d gets of supplier n%d: %v", h, s, x.down[0])
			}
			outer(w.losses, h, func(w *world) { w.losses--; w.breakStream(h, s) }, "the stream of n%d to n%d breaks", h, s)
		}
	}
	for n := range w.c.nodes {
		for _, t := range topicNames {
			outer(w.forgets, n, func(w *world) { w.forgets--; w.lenders[n].Forget(t) }, "n%d forgets topic %s", n, t)
		}
	}
}

func (w *world) jobEvents(inner adder, outer boundedAdder) {
	for j := range w.c.jobs {
		n := int(w.leader[w.c.jobGroup[j]])
		become := func(s jobState) func(*world) {
			return func(w *world) {
				w.jobs[j] = s
				w.settle(n, topicNames[w.c.jobTopic[j]])
			}
		}
		remove := func(w *world) { w.deletes--; become(deleted)(w) }
		switch w.jobs[j] {
		case unborn:
			outer(1, n, become(ready), "job %d is ready", j)
			if w.c.soon {
				outer(1, n, become(soon), "job %d is due soon", j)
			}
		case soon:
			inner(n, become(ready), "job %d is ready", j)
			outer(w.deletes, n, remove, "job %d is deleted", j)
		case ready:
			outer(w.deletes, n, remove, "job %d is deleted", j)
		case releasing:
			inner(n, become(ready), "job %d is released", j)
		}
	}
}

func (w *world) waiterEvents(outer boundedAdder) {
	for i := range w.c.waiters {
		x, n := w.waiters[i], w.c.home[i]
		switch x.state {
		case absent:
			outer(1, n, func(w *world) { w.come(i) }, "waiter %d comes", i)
		case here, busy, lent:
			if x.left == stays {
				outer(w.deadlines, n, func(w *world) { w.deadlines--; w.leave(i, expired) }, "waiter %d's time is over", i)
			}
			if x.left != gone {
				outer(w.hangUps, n, func(w *world) { w.hangUps--; w.leave(i, gone) }, "waiter %d hangs up", i)
			}
		}
	}
}

func (w *world) settle(n int, topics ...string) { w.lenders[n].Settle(topics...) }
func (w *world) settleAll(n int)                { w.settle(n, topicNames[:]...) }

func (w *world) arriveUp(h, s int) {
	x := &w.streams[h][s]
	m := x.up[0]
	x.up = x.up[1:]
	if m.Kind != Lend {
		w.lenders[s].Receive(nodeNames[h], m)
		return
	}
	i := int(m.Waiter)
	if w.guests[s][i] != noGuest {
		w.bad("waiter %d is lent to n%d twice", i, s)
	}
	w.guests[s][i] = guestWaits
	w.lenders[s].Admit(Guest{nodeNames[h], m.Waiter}, w.topicsOf(i), m.Poll)
}

func (w *world) come(i int) {
	w.waiters[i].state = here
	w.settleOwn(i)
}

// settleOwn settles the topics of a waiter that has come to the queues of its home, or lends it if it does not wait.
func (w *world) settleOwn(i int) {
	n := w.c.home[i]
	if w.c.poll[i] {
		room{w, n}.Match(w.topicsOf(i))
		if w.waiters[i].state == here {
			w.lenders[n].Poll(uint64(i))
		}
	}
	w.settle(n, w.topicsOf(i)...)
}

// leave ends the wait of a waiter, whose consumer or time has run out.
func (w *world) leave(i int, why leaving) {
	x := &w.waiters[i]
	n := w.c.home[i]
	x.left = why
	switch x.state {
	case here:
		x.state = ended
		w.settle(n, w.topicsOf(i)...)
	case busy:
		room{w, n}.mark(i, false, func(r *reserve) { r.left = why })
	case lent:
		w.lenders[n].Leave(uint64(i), why == expired)
	}
}

// reserveFor reserves what a Reserve finds when it is applied.
func (w *world) reserveFor(r reserve, as jobState) (jobs uint8) {
	left := w.c.max[r.waiter]
	for j := range w.c.jobs {
		if left > 0 && w.jobs[j] == ready && w.c.jobGroup[j] == int(r.group) && w.waitsFor(int(r.waiter), w.c.jobTopic[j]) {
			w.jobs[j] = as
			jobs |= 1 << j
			left--
		}
	}
	return jobs
}

// commit commits and applies a Reserve, and handles its result.
func (w *world) commit(k int) {
	r := w.reserves[k]
	w.reserves = slices.Delete(w.reserves, k, k+1)
	jobs := w.reserveFor(r, reserved)
	if r.left == gone && jobs != 0 {
		w.setJobs(jobs, releasing)
		jobs = 0
	}
	w.result(r, jobs)
	w.settleAll(int(r.node))
}

// result handles that of a Reserve. The node's topics must be settled afterwards.
func (w *world) result(r reserve, jobs uint8) {
	i, n := int(r.waiter), int(r.node)
	switch {
	case r.abandoned:
	case r.guest:
		switch {
		case jobs != 0:
			w.guests[n][i] = noGuest
			w.lenders[n].GuestEnded(Guest{nodeNames[w.c.home[i]], uint64(i)}, w.topicsOf(i), jobs)
		case r.left != stays || w.c.poll[i]:
			w.guests[n][i] = noGuest
			w.lenders[n].GuestEnded(Guest{nodeNames[w.c.home[i]], uint64(i)}, w.topicsOf(i), nil)
		default:
			w.guests[n][i] = guestWaits
		}
	case jobs != 0:
		w.deliver(i, jobs)
		w.waiters[i].state = ended
	case r.left != stays:
		w.waiters[i].state = ended
	default:
		w.waiters[i].state = here
		w.settleOwn(i)
	}
}

// depose ends what a node does as the leader of a group. Its Reserves are not committed, or they are and
// it does not get to know that.
func (w *world) depose(n, g int, unseen bool) {
	w.leads[n][g] = false
	var mine []reserve
	w.reserves = slices.DeleteFunc(w.reserves, func(r reserve) bool {
		is := int(r.node) == n && int(r.group) == g
		if is {
			mine = append(mine, r)
		}
		return is
	})
	for _, r := range mine {
		if unseen {
			w.reserveFor(r, lost)
		}
		w.result(r, 0)
	}
	w.settleAll(n)
}

func (w *world) breakStream(h, s int) {
	x := &w.streams[h][s]
	for _, m := range x.down {
		if m.Jobs != nil {
			w.setJobs(m.Jobs, lost)
		}
	}
	x.up, x.down, x.homeStale, x.suppStale = nil, nil, true, true
}

func (w *world) crash(n int, unseen bool) {
	for p := range w.c.nodes {
		if p != n {
			w.breakStream(n, p)
			w.breakStream(p, n)
			w.streams[n][p].homeStale, w.streams[p][n].suppStale = false, false
		}
	}
	w.reserves = slices.DeleteFunc(w.reserves, func(r reserve) bool {
		if int(r.node) != n {
			return false
		}
		if unseen {
			w.reserveFor(r, lost)
		}
		return true
	})
	for i := range w.c.waiters {
		w.guests[n][i] = noGuest
		if w.c.home[i] == n && w.waiters[i].state != absent {
			w.waiters[i] = waiter{state: ended, left: gone, got: w.waiters[i].got}
		}
	}
	for g := range w.c.groups {
		w.leads[n][g] = false
		if int(w.leader[g]) == n {
			w.leader[g] = int8((n + 1) % w.c.nodes)
		}
	}
	w.restart(n)
}
