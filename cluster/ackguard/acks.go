package ackguard

import (
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/raft"
)

// Ack is what a server has acknowledged to have on disk: a term, and the last entry
// that matches the log of that term's leader, or 0. Other servers rely on it: on a vote
// in the term, and on the entry as part of a majority.
//
// A correct server never has less than it has acknowledged: terms only grow, and an
// entry that a term's leader has is only ever replaced under a later term.
//
// Acks are in memory. A leader has one for each reply that it counted (see
// Transport). A follower counts the entries of the present term in its own log as an
// ack of the leader, which had every entry first. Every status call carries the acks.
// The leader makes these calls to each member every two seconds, so within that time
// all members have all acks. A rolled-back server is detected if any node that has the
// ack replies when the server starts. It is not detected if all these nodes have
// restarted in the meantime.
type Ack struct {
	Group       uint32 // number of the Raft group
	ServerID    string
	Term, Index uint64
}

// position is how far an ack goes.
type position struct{ term, index uint64 }

func (p position) less(than position) bool {
	return p.term < than.term || p.term == than.term && p.index < than.index
}

// acks are those that a node knows.
type acks struct {
	mu    sync.Mutex
	known map[string]position // by server id

	leader     string // of leaderTerm, the newest known term
	leaderTerm uint64
}

// maxAcks bounds the acks. A cluster has fewer servers.
const maxAcks = 64

// merge records an ack unless a later one of the server is known.
func (a *acks) merge(serverID string, next position) {
	if serverID == "" || next.term == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old, known := a.known[serverID]
	if !old.less(next) {
		return
	}
	if !known && len(a.known) >= maxAcks {
		a.dropOldest()
	}
	if a.known == nil {
		a.known = map[string]position{}
	}
	a.known[serverID] = next
}

// dropOldest deletes the oldest ack, of a server that was removed long ago. It is
// called with mu held.
func (a *acks) dropOldest() {
	oldest := ""
	for id, has := range a.known {
		if oldest == "" || has.less(a.known[oldest]) {
			oldest = id
		}
	}
	delete(a.known, oldest)
}

func (a *acks) of(serverID string) position {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[serverID]
}

// list returns the acks of the given servers as those of a group.
func (a *acks) list(group uint32, wanted func(serverID string) bool) (list []Ack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, has := range a.known {
		if wanted(id) {
			list = append(list, Ack{Group: group, ServerID: id, Term: has.term, Index: has.index})
		}
	}
	return list
}

// noteLeader records the leader of a term, from a message of that leader.
func (a *acks) noteLeader(term uint64, leader string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term >= a.leaderTerm {
		a.leader, a.leaderTerm = leader, term
	}
}

// leaderOf returns the leader of a term; empty: it is not known.
func (a *acks) leaderOf(term uint64) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term == 0 || a.leaderTerm != term {
		return ""
	}
	return a.leader
}

// inherited records an entry of this node's log as an ack of whoever led its term: that
// leader had it.
func (a *acks) inherited(entry position, self string) {
	if leader := a.leaderOf(entry.term); leader != "" && leader != self {
		a.merge(leader, entry)
	}
}

// LogPosition is the term and the last entry that a server has on disk.
type LogPosition struct {
	Term      uint64 // Raft's
	LastIndex uint64 // of the log, or of the state when that has come further
}

// checkRollback returns an error if a server at p has acknowledged more.
func (p LogPosition) checkRollback(acked position) error {
	switch {
	case p.Term < acked.term:
		return fmt.Errorf("this node has acknowledged term %d to the others, but its data directory has only come to term %d: it is an older copy, or its disk has lost data", acked.term, p.Term)
	case p.Term == acked.term && p.LastIndex < acked.index:
		return fmt.Errorf("this node has acknowledged entry %d of term %d to the others, but its data directory ends with entry %d: it is an older copy, or its disk has lost data", acked.index, acked.term, p.LastIndex)
	}
	return nil
}

// positionOf returns the position of a running Raft, and how much of it may count as an
// ack: the last entry counts only if it is of the present term. The term is read
// before and after, because a later leader may truncate entries.
func positionOf(r *raft.Raft) (LogPosition, position) {
	for {
		term := r.CurrentTerm()
		last := r.LastIndex()
		lastTerm := LastLogTerm(r)
		if r.CurrentTerm() != term {
			continue
		}
		now := position{term: term}
		if lastTerm == term {
			now.index = last
		}
		return LogPosition{Term: term, LastIndex: last}, now
	}
}

// Of returns the ack of a server that this node knows; the zero term: none.
func (g *Guard) Of(serverID string) Ack { return g.ack(serverID, g.acks.of(serverID)) }

func (g *Guard) ack(serverID string, has position) Ack {
	return Ack{Group: g.cfg.Group, ServerID: serverID, Term: has.term, Index: has.index}
}

// Known returns the acks that this node sends to others: those of the members that it
// knows, its own, and its leader's. It is empty until Raft runs.
func (g *Guard) Known() []Ack {
	r := g.raft.Load()
	if r == nil {
		return nil
	}
	list := g.acks.list(g.cfg.Group, func(id string) bool { return id != g.cfg.ServerID && g.configured(id) })
	if _, own := positionOf(r); own.term > 0 {
		list = append(list, g.ack(g.cfg.ServerID, own))
		if leader := g.acks.leaderOf(own.term); leader != "" && leader != g.cfg.ServerID {
			list = append(list, g.ack(leader, own))
		}
	}
	return list
}

// Merge records the acks of this group that another node knows, and skips those of other groups. It
// calls Config.OnRollback if this node has acknowledged more than it has. The caller must trust the
// other node: a forged ack ends this process.
func (g *Guard) Merge(list []Ack) {
	r := g.raft.Load()
	term := uint64(math.MaxUint64) // until Raft runs, any may be right
	if r != nil {
		term = r.CurrentTerm()
	}
	for _, a := range list {
		if a.Group == g.cfg.Group && !farBeyond(a.Term, term) {
			g.acks.merge(a.ServerID, position{a.Term, a.Index})
		}
	}
	if r == nil {
		return
	}
	now := func() LogPosition { p, _ := positionOf(r); return p }
	if err := g.acks.check(g.cfg.ServerID, now); err != nil {
		g.cfg.OnRollback(err)
	}
}

// check returns an error if a running server has acknowledged more than it has. It
// reads the ack before the position, because the server may acknowledge more while its
// position is read.
func (a *acks) check(serverID string, now func() LogPosition) error {
	acked := a.of(serverID)
	return now().checkRollback(acked)
}

// Check returns an error if this node has acknowledged more than it has, by the acks
// that were merged. It is called before Raft runs.
func (g *Guard) Check(now LogPosition) error { return now.checkRollback(g.acks.of(g.cfg.ServerID)) }
