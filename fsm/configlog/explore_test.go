package configlog

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
)

// A search through the states of model_test.go.

// key is a hash of a state, so wide that no two states have the same.
type key [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func keyOf(s state) key {
	s.sortGroups()
	return key{maphash.Comparable(seeds[0], s), maphash.Comparable(seeds[1], s)}
}

// found is what a search has come to.
type found struct {
	states, edges, quiet, depth int
	cut                         bool   // there are more states
	problem                     string // empty: none
	way                         []string
}

func (f *found) String() string {
	text := fmt.Sprintf("%d states, %d steps, %d quiet, depth %d", f.states, f.edges, f.quiet, f.depth)
	if f.cut {
		text += ", cut off"
	}
	if f.problem != "" {
		text += "\n" + f.problem + "\n" + strings.Join(f.way, "\n")
	}
	return text
}

// node says how a state is reached.
type node struct {
	parent uint32
	choice uint16
}

// breadth explores all orders of events, the shortest first, up to a number of states.
func (m *model) breadth(limit int) (f found) {
	s := m.start()
	seen := map[key]struct{}{keyOf(s): {}}
	nodes := []node{{}}
	front, ids := []state{s}, []uint32{0}
	var buf []next
	for ; len(front) > 0; f.depth++ {
		var nextFront []state
		var nextIDs []uint32
		for i := range front {
			buf = m.successors(&front[i], buf)
			inner := false
			for j := range buf {
				f.edges++
				inner = inner || buf[j].inner
				if buf[j].problem != "" {
					f.states, f.problem, f.way = len(nodes), buf[j].problem, m.way(nodes, ids[i], j)
					return f
				}
				k := keyOf(buf[j].state)
				if _, there := seen[k]; there {
					continue
				}
				seen[k] = struct{}{}
				nodes = append(nodes, node{ids[i], uint16(j)})
				nextFront, nextIDs = append(nextFront, buf[j].state), append(nextIDs, uint32(len(nodes)-1))
			}
			if !inner {
				f.quiet++
				if f.problem = m.stuck(&front[i]); f.problem != "" {
					f.states, f.way = len(nodes), m.way(nodes, ids[i], -1)
					return f
				}
			}
			if len(nodes) > limit {
				f.states, f.cut = len(nodes), true
				return f
			}
		}
		front, ids = nextFront, nextIDs
	}
	f.states = len(nodes)
	return f
}

// way returns the steps to a state, and one of those that are possible there; -1: none.
func (m *model) way(nodes []node, id uint32, last int) (steps []string) {
	choices := []int{last}
	for ; id != 0; id = nodes[id].parent {
		choices = append(choices, int(nodes[id].choice))
	}
	m.labels = true
	defer func() { m.labels = false }()
	s := m.start()
	for i := len(choices) - 1; i >= 0 && choices[i] >= 0; i-- {
		n := m.successors(&s, nil)[choices[i]]
		s = n.state
		steps = append(steps, fmt.Sprintf("%3d %s   | %s", len(choices)-i, n.label, s.String()))
	}
	return steps
}

// endless looks for a run without an end: a state that is reached from itself.
func (m *model) endless(limit int) bool {
	const open, closed = 1, 2
	colour := make(map[key]uint8)
	var walk func(s *state) bool
	walk = func(s *state) bool {
		k := keyOf(*s)
		colour[k] = open
		for _, n := range m.successors(s, nil) {
			switch colour[keyOf(n.state)] {
			case open:
				return true
			case 0:
				if len(colour) < limit && walk(&n.state) {
					return true
				}
			}
		}
		colour[k] = closed
		return false
	}
	s := m.start()
	return walk(&s)
}

// random makes runs to their ends, for what is too large to be explored.
func (m *model) random(steps int, seed uint64) (f found) {
	for f.edges < steps && f.problem == "" {
		seed++
		before := f
		m.run(seed, &f)
		if f.problem != "" { // once more, with words
			m.labels = true
			m.run(seed, &before)
			m.labels = false
			f.way = before.way
		}
	}
	return f
}

func (m *model) run(seed uint64, f *found) {
	r := rand.New(rand.NewPCG(seed, 1))
	faults := r.IntN(8)
	s := m.start()
	var buf []next
	for f.problem == "" {
		buf = m.successors(&s, buf)
		var inner []int
		for i := range buf {
			if buf[i].inner {
				inner = append(inner, i)
			}
		}
		if len(inner) == 0 {
			f.quiet++
			f.problem = m.stuck(&s)
		}
		if len(buf) == 0 {
			return
		}
		i := r.IntN(len(buf))
		if len(inner) > 0 && r.IntN(8) > faults {
			i = inner[r.IntN(len(inner))]
		}
		if f.problem == "" {
			f.problem = buf[i].problem
		}
		s = buf[i].state
		f.edges++
		if m.labels {
			f.way = append(f.way, buf[i].label+"   | "+s.String())
		}
	}
}
