package lending

import (
	"flag"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	only = flag.String("lending.config", "", "explore this configuration only, or all")
	most = flag.Int("lending.states", 5_000_000, "states of a configuration, with -lending.config")
)

type key [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// key is equal for states of which the same can come.
func (w *world) key(buf []byte) (key, []byte) {
	buf = w.encode(buf[:0])
	return key{maphash.Bytes(seeds[0], buf), maphash.Bytes(seeds[1], buf)}, buf
}

func (w *world) encode(b []byte) []byte {
	put := func(n int8) { b = append(b, byte(n)) }
	flag := func(f bool) {
		if f {
			put(1)
		} else {
			put(0)
		}
	}
	for _, n := range []int8{w.losses, w.moves, w.crashes, w.deletes, w.deadlines, w.hangUps, w.forgets} {
		put(n)
	}
	for g := range w.c.groups {
		put(w.leader[g])
	}
	for j := range w.c.jobs {
		put(int8(w.jobs[j]))
	}
	for i, x := range w.waiters[:w.c.waiters] {
		put(int8(x.state) | int8(x.left)<<4)
		put(x.got)
		for n := range w.c.nodes {
			put(int8(w.guests[n][i]))
		}
	}
	put(int8(len(w.reserves)))
	for _, r := range w.reserves {
		b = append(b, byte(r.group), byte(r.node), byte(r.waiter), byte(r.left), byte(r.claims[0]), byte(r.claims[1]))
		flag(r.guest)
		flag(r.abandoned)
	}
	for h := range w.c.nodes {
		for g := range w.c.groups {
			flag(w.leads[h][g])
		}
		for s := range w.c.nodes {
			if h != s {
				x := &w.streams[h][s]
				flag(x.homeStale)
				flag(x.suppStale)
				b = encodeMessages(b, x.up)
				b = encodeMessages(b, x.down)
			}
		}
		b = w.lenders[h].encode(b)
	}
	return b
}

func encodeMessages(b []byte, ms []Message) []byte {
	b = append(b, byte(len(ms)))
	for _, m := range ms {
		flags := byte(0)
		for i, f := range []bool{m.Short, m.Poll, m.Keep, m.Topic == "a"} {
			if f {
				flags |= 1 << i
			}
		}
		jobs, _ := m.Jobs.(uint8)
		b = append(b, byte(m.Kind), byte(m.N), byte(m.Waiter), flags, jobs, byte(len(m.More)))
		for _, t := range m.More {
			b = append(b, t[0])
		}
	}
	return b
}

func (l *Lender) encode(b []byte) []byte {
	for _, s := range l.suppliers {
		for _, t := range topicNames {
			b = append(b, byte(s.hint[t]))
			if s.told[t] {
				b[len(b)-1] |= 128
			}
		}
	}
	for _, h := range l.homes {
		for _, t := range topicNames {
			b = append(b, byte(h.asked[t]))
			if h.interest[t] {
				b[len(b)-1] |= 128
			}
		}
		for _, w := range sortedKeys(h.guests) {
			b = append(b, byte(w))
		}
		b = append(b, 255)
	}
	for _, w := range sortedKeys(l.loans) {
		p := l.loans[w]
		b = append(b, byte(w), byte(p.leaving), byte(slices.Index(l.suppliers, p.to)))
		for _, s := range p.left {
			b = append(b, byte(slices.Index(l.suppliers, s)))
		}
		b = append(b, 254)
	}
	return append(b, 255)
}

// step is one transition of the search.
type step struct {
	to    *world
	event int
	with  choice
	inner bool
}

// steps returns what can come of w in one event, with all choices that the event asks for.
func (w *world) steps() (out []step) {
	for k, e := range w.events() {
		try := func(with choice) choice {
			to := w.copy(e.node)
			to.choice = with
			e.do(to)
			if to.problem == "" {
				to.problem = to.invariant()
			}
			out = append(out, step{to, k, with, e.inner})
			return to.choice
		}
		asked := try(choice{})
		if asked.askedHints {
			try(choice{hintsFirst: true})
		}
		if asked.askedWhichNode {
			try(choice{last: true})
		}
		if asked.askedHints && asked.askedWhichNode {
			try(choice{hintsFirst: true, last: true})
		}
	}
	return out
}

// found is a state that the search has reached first from another one.
type found struct {
	from  uint32
	event uint16
	with  choice
}

// search explores all states of c, shortest way first. It returns a problem, and how it comes about.
type search struct {
	c      *config
	all    []found
	number map[key]uint32
	edges  [][]uint32 // to which states each one leads
	quiet  int
}

func explore(c *config, most int) (s *search, problem string) {
	s = &search{c: c, number: map[key]uint32{}}
	first := newWorld(c)
	k, buf := first.key(nil)
	s.number[k] = 0
	s.all, s.edges = []found{{}}, [][]uint32{nil}
	front, numbers := []*world{first}, []uint32{0}
	for len(front) > 0 {
		var next []*world
		var nextNumbers []uint32
		for f, w := range front {
			inner := false
			for _, st := range w.steps() {
				inner = inner || st.inner
				if st.to.problem != "" {
					return s, st.to.problem + s.way(numbers[f], &found{numbers[f], uint16(st.event), st.with})
				}
				k, buf = st.to.key(buf)
				id, seen := s.number[k]
				if !seen {
					id = uint32(len(s.all))
					s.number[k] = id
					s.all = append(s.all, found{numbers[f], uint16(st.event), st.with})
					s.edges = append(s.edges, nil)
					next, nextNumbers = append(next, st.to), append(nextNumbers, id)
				}
				s.edges[numbers[f]] = append(s.edges[numbers[f]], id)
			}
			front[f] = nil
			if !inner {
				s.quiet++
				if p := w.unfinished(); p != "" {
					return s, p + s.way(numbers[f], nil)
				}
			}
			if len(s.all) > most {
				return s, fmt.Sprintf("more than %d states", most)
			}
		}
		front, numbers = next, nextNumbers
	}
	if id, ok := s.endless(); ok {
		return s, "a run without an end" + s.way(id, nil)
	}
	return s, ""
}

// endless returns a state that comes again, if there is one.
func (s *search) endless() (uint32, bool) {
	before := make([]int, len(s.all))
	for _, to := range s.edges {
		for _, id := range to {
			before[id]++
		}
	}
	var free []uint32
	for id, n := range before {
		if n == 0 {
			free = append(free, uint32(id))
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		before[id] = -1
		for _, to := range s.edges[id] {
			if before[to]--; before[to] == 0 {
				free = append(free, to)
			}
		}
	}
	for id, n := range before {
		if n > 0 {
			return uint32(id), true
		}
	}
	return 0, false
}

// way describes the shortest way to a state, and one more event.
func (s *search) way(id uint32, last *found) string {
	var steps []found
	if last != nil {
		steps = append(steps, *last)
	}
	for ; id != 0; id = s.all[id].from {
		steps = append(steps, s.all[id])
	}
	var b strings.Builder
	w := newWorld(s.c)
	for i := len(steps) - 1; i >= 0; i-- {
		e := w.events()[steps[i].event]
		fmt.Fprintf(&b, "\n  %v", e)
		w = w.copy(e.node)
		w.choice = steps[i].with
		e.do(w)
	}
	return b.String()
}

func TestLendingHoldsInAllOrdersOfEvents(t *testing.T) {
	for i := range configs {
		c := &configs[i]
		limit := *most
		switch {
		case *only == "" && !c.short:
			continue
		case *only != "" && *only != "all" && *only != c.name:
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			s, problem := explore(c, limit)
			t.Logf("%d states, %d of them quiet, in %v", len(s.all), s.quiet, time.Since(start).Round(time.Millisecond))
			if problem != "" {
				t.Fatal(problem)
			}
		})
	}
}
