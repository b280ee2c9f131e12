package membership

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
)

// A receipt is what a server has told others that it has on disk: it has come to
// a term, and to an entry that the leader of that very term has too, or to none
// yet. Others count on it: a vote in the term, and the entry as a part of a
// majority.
//
// Nodes remember each other's receipts, so that one whose data directory was
// replaced by an older copy is found out: it has come to less than it said. It
// must not vote or acknowledge anything, for it could help a leader win that lacks
// what was acknowledged. The comparison never takes a sound server for such a
// one: terms only grow, and an entry that a term's leader has is only ever
// replaced under a later term.
//
// Receipts are in memory. A leader has one of each answer that it counted (see
// Witness), and a follower takes its own log of the present term for a receipt of
// the leader's, which had every entry first. They travel with every question of
// where a node stands, which the leader asks each member every two seconds, so
// all members know all within that time. So a copy is found out as long as the
// node to which more was acknowledged answers at the start, or any node that
// heard of it by then; when all of them were restarted meanwhile it is not.
type receipt struct{ term, index uint64 }

func (r receipt) less(than receipt) bool {
	return r.term < than.term || r.term == than.term && r.index < than.index
}

// receipts are those that a node knows.
type receipts struct {
	mu    sync.Mutex
	known map[string]receipt // by server id

	leader     string // of leaderTerm, the newest that was heard of
	leaderTerm uint64
}

// maxReceipts bounds them. There are no more servers than that.
const maxReceipts = 64

func (r *receipts) merge(from []*memberpb.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]receipt{}
	}
	for _, p := range from {
		if p.GetTerm() == 0 {
			continue
		}
		next := receipt{p.GetTerm(), p.GetIndex()}
		old, known := r.known[p.GetServerId()]
		if p.GetServerId() == "" || !old.less(next) {
			continue
		}
		if !known && len(r.known) >= maxReceipts {
			r.dropOldest()
		}
		r.known[p.GetServerId()] = next
	}
}

// dropOldest makes room: the oldest is of a server that was removed long ago.
func (r *receipts) dropOldest() {
	oldest := ""
	for id, has := range r.known {
		if oldest == "" || has.less(r.known[oldest]) {
			oldest = id
		}
	}
	delete(r.known, oldest)
}

func (r *receipts) of(serverID string) receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[serverID]
}

// ReceiptOf is what a server is known to have on disk.
func (m *Membership) ReceiptOf(serverID string) (term, index uint64) {
	r := m.receipts.of(serverID)
	return r.term, r.index
}

// list gives those of the servers that are wanted.
func (r *receipts) list(wanted func(serverID string) bool) (list []*memberpb.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, has := range r.known {
		if wanted(id) {
			list = append(list, &memberpb.Receipt{ServerId: id, Term: has.term, Index: has.index})
		}
	}
	return list
}

// Stand is where a server has come to, on disk.
type Stand struct {
	Term      uint64 // Raft's
	LastIndex uint64 // of the log, or of the state when that has come further
}

// rolledBack is an error when a server that is at s has given a receipt for more.
func (s Stand) rolledBack(has receipt) error {
	switch {
	case s.Term < has.term:
		return fmt.Errorf("this node has told the others that it had come to term %d, but its data directory has come to term %d only: it is an older copy, or its disk has lost what it had stored", has.term, s.Term)
	case s.Term == has.term && s.LastIndex < has.index:
		return fmt.Errorf("this node has told the others that it had stored entry %d of term %d, but its data directory ends with entry %d: it is an older copy, or its disk has lost what it had stored", has.index, has.term, s.LastIndex)
	}
	return nil
}

// standOf reads where a running Raft has come to. The last entry counts only when
// it is of the present term. The term is read before and after, for a later
// leader may take entries away.
func (m *Membership) standOf(r *raft.Raft) (Stand, receipt) {
	for {
		term := r.CurrentTerm()
		last := r.LastIndex()
		lastTerm := m.localStats(r).LastTerm
		if r.CurrentTerm() != term {
			continue
		}
		now := receipt{term: term}
		if lastTerm == term {
			now.index = last
		}
		return Stand{Term: term, LastIndex: last}, now
	}
}

// receiptsToTell are those of the members that this node knows, and its own.
func (m *Membership) receiptsToTell() []*memberpb.Receipt {
	r := m.raft.Load()
	if r == nil {
		return nil
	}
	list := m.receipts.list(func(id string) bool { return id != m.cfg.ServerID && m.Configured(id) })
	if _, own := m.standOf(r); own.term > 0 {
		list = append(list, &memberpb.Receipt{ServerId: m.cfg.ServerID, Term: own.term, Index: own.index})
		if leader := m.receipts.leaderOf(own.term); leader != "" && leader != m.cfg.ServerID {
			list = append(list, &memberpb.Receipt{ServerId: leader, Term: own.term, Index: own.index})
		}
	}
	return list
}

// hear takes in what another node knows, and ends this one when its own receipt
// is for more than it has.
func (m *Membership) hear(list []*memberpb.Receipt) {
	r := m.raft.Load()
	if r != nil {
		now := r.CurrentTerm()
		list = slices.DeleteFunc(list, func(p *memberpb.Receipt) bool { return farBeyond(p.GetTerm(), now) })
	}
	m.receipts.merge(list)
	if r == nil || m.cfg.Doubt == nil {
		return
	}
	stand := func() Stand { s, _ := m.standOf(r); return s }
	if err := m.receipts.check(m.cfg.ServerID, stand); err != nil {
		m.cfg.Doubt(err)
	}
}

// check is an error when a running server's receipt is for more than it has. The
// receipt is read first: one for what the server acknowledges while its stand is
// read may come in at any time.
func (r *receipts) check(serverID string, stand func() Stand) error {
	has := r.of(serverID)
	return stand().rolledBack(has)
}

// CheckReceipts asks the other servers of a configuration, before Raft starts,
// what this node has told them, and is an error when it has told more than it
// has. It waits two seconds at most for those that do not answer; they are heard
// later.
func (m *Membership) CheckReceipts(ctx context.Context, servers []raft.Server, now Stand) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range servers {
		if string(s.ID) == m.cfg.ServerID {
			continue
		}
		wg.Go(func() {
			resp, err := m.ask(ctx, string(s.ID), string(s.Address))
			if err != nil {
				m.cfg.Logger.Debug("no answer to what this node has acknowledged", "server", s.ID, "error", err)
				return
			}
			m.receipts.merge(resp.Receipts)
		})
	}
	wg.Wait()
	return now.rolledBack(m.receipts.of(m.cfg.ServerID))
}
