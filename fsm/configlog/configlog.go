// Package configlog has the rules by which the data groups of a cluster follow the decisions of its
// config group. It is pure, so that one explorer (explore_test.go) drives what the state machine
// and the leaders decide through all orders of events.
//
// The config group counts its changes: tokens, settings of topics, namespaces and the cluster
// version. A data group has a copy of the result as of a Position, and gets the changes after it
// through its own log. So what counts is the position in the group's state, not who sent what: a
// change that comes twice, late or from a deposed leader does nothing.
//
// What a client may do is decided where its operation is applied, with the tokens that the group
// has. They may be outdated, so the group also records when it last heard from the config group. It
// accepts nothing from clients later than Lease after that.
package configlog

import "cmp"

// LeaseMS is how long a data group accepts operations of clients after the instant at which its
// leader last asked the config group.
const LeaseMS = 10_000

// Position is a place in the config group's history. The zero Position is before all of them: no
// config at all.
type Position struct {
	// Epoch names the history: it grows when the config group continues from an older state.
	Epoch uint64
	// Number counts the changes of the epoch.
	Number uint64
}

// Compare returns the order of two positions, as cmp.Compare does.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Number, q.Number))
}

// Before reports whether p lacks something that q has.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// Heard is when a leader of the group asked the config group, by that leader's clock. Clocks of
// two leaders differ, so it counts in one term only. Term 0, which no leader has: never.
type Heard struct {
	Term    uint64
	AskedMS int64
}

// Group is what a data group replicates of the protocol.
type Group struct {
	Position
	Heard   Heard
	Loading Loading
}

// Loading is a whole config of which the group does not have all parts. Meanwhile its position is
// the zero one.
type Loading struct {
	At   Position // that the config is of; zero: nothing is loading
	Next string   // the part that comes next; empty: the first
}

// Changes reports what becomes of n changes after a position: skip of them are in the state, and the
// rest is applied. false: none is, because they are of another history or would leave a gap.
func (g *Group) Changes(after Position, n int) (skip int, ok bool) {
	if after.Epoch != g.Epoch || after.Number > g.Number {
		return 0, false
	}
	skip = int(min(g.Number-after.Number, uint64(n)))
	g.Number += uint64(n - skip)
	return skip, true
}

// Part is a part of a whole config.
type Part struct {
	At         Position // that the config is of
	From, Next string   // where the part begins, and the next one; empty: the first, the last
}

// Part reports whether a part of a whole config replaces what the state has of it. The first part
// of a newer config ends the position, because from then on the state is a mixture; the last one
// sets it.
func (g *Group) Part(p Part) bool {
	switch {
	case p.From != "" && g.Loading != Loading{At: p.At, Next: p.From}:
		return false
	case p.From == "" && (!g.Before(p.At) || p.At.Before(g.Loading.At)):
		return false
	}
	if p.Next != "" {
		g.Position, g.Loading = Position{}, Loading{At: p.At, Next: p.Next}
	} else {
		g.Position, g.Loading = p.At, Loading{}
	}
	return true
}

// Hear takes note that the config group was at a position after its leader had been asked. Only a
// group that has all of that has heard: what it lacks may be the end of a token.
func (g *Group) Hear(h Heard, at Position) bool {
	if g.Before(at) || h.Term == g.Heard.Term && h.AskedMS <= g.Heard.AskedMS {
		return false
	}
	g.Heard = h
	return true
}

// HeardIn returns when a leader of a term asked last; 0: the group has not heard in that term.
func (g *Group) HeardIn(term uint64) int64 {
	if g.Heard.Term != term {
		return 0
	}
	return g.Heard.AskedMS
}

// Accepts reports whether an operation of a client may be done in an entry with this term and time.
// Both clocks are that of one leader, which never goes back.
func (g *Group) Accepts(term uint64, nowMS int64) bool {
	return g.Epoch != 0 && g.Heard.Term != 0 && g.Heard.Term == term && nowMS <= g.Heard.AskedMS+LeaseMS
}

// OutOfTouch forgets that the group has heard: the clock was set back, or the state continues from
// an older one, which may lack what was confirmed.
func (g *Group) OutOfTouch() { g.Heard = Heard{} }

// Need is what a group lacks of the config that a replica of the config group has.
type Need int

const (
	Nothing Need = iota
	Changes
	Whole
)

// Need compares the group with a replica at a position, which has the changes after number kept of
// its epoch. A replica may be behind the group. next is the part of the whole config to begin with.
func (g *Group) Need(replica Position, kept uint64) (need Need, next string) {
	switch {
	case !g.Before(replica), replica.Before(g.Loading.At):
		return Nothing, ""
	case g.Epoch == replica.Epoch && g.Number >= kept:
		return Changes, ""
	case g.Loading.At == replica:
		return Whole, g.Loading.Next
	}
	return Whole, ""
}

// Reports are the newest positions that the leaders of the data groups have reported, by group. They
// are in the memory of the config group's leader: a new leader knows of none, so it takes too many
// groups for lagging, and never too few.
type Reports map[uint32]Position

// Add records a report, and reports whether it is news. Reports may overtake each other.
func (r Reports) Add(group uint32, at Position) bool {
	if !r[group].Before(at) {
		return false
	}
	r[group] = at
	return true
}

// Lagging returns the groups from 1 to groups that have not reported a position.
func (r Reports) Lagging(at Position, groups uint32) (lagging []uint32) {
	for g := uint32(1); g <= groups; g++ {
		if r[g].Before(at) {
			lagging = append(lagging, g)
		}
	}
	return lagging
}
