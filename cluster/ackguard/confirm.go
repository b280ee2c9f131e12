package ackguard

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
)

// ConfirmLeader reports in which term this node leads, after a majority of the
// voters, including itself, has replied in that term to a request that this node
// sent after the call began. It blocks for a round trip, or until ctx ends. Without
// a majority it returns an error. With a single voter it sends nothing.
//
// Raft's VerifyLeader starts the round, but its result is too weak. It counts every
// success that arrives after the call, so also the reply to an older request. That
// reply may have been in the receive buffer of a suspended process while other nodes
// elected a leader and acknowledged writes.
//
// A reply to a later request is sufficient. A follower reads its term when it replies,
// which is after the call began, and it reports success only in the leader's term. So
// until then it has not voted in a later term. A later leader that was elected before
// the call would have needed the vote of one of this majority. So there was none, and
// this node has everything that was acknowledged by then.
func (g *Guard) ConfirmLeader(ctx context.Context) (term uint64, err error) {
	r := g.raft.Load()
	if r == nil {
		return 0, raft.ErrNotLeader
	}
	term = r.CurrentTerm()
	if r.State() != raft.Leader {
		return 0, raft.ErrNotLeader
	}
	began := g.successes.next()
	r.VerifyLeader() // because it sends heartbeats at once
	if err := g.awaitMajority(ctx, term, began); err != nil {
		return 0, err
	}
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return 0, raft.ErrNotLeader
	}
	return term, nil
}

// awaitMajority blocks until a majority of the voters, including this node, has replied in
// the term to a request that began after since.
func (g *Guard) awaitMajority(ctx context.Context, term, since uint64) error {
	c := raftconfig.Latest(g.raft.Load())
	voters := raftconfig.Voters(c)
	needed := raftconfig.Quorum(len(voters))
	if i := slices.Index(voters, g.self()); i >= 0 {
		voters = slices.Delete(voters, i, i+1)
		needed--
	}
	return g.successes.wait(ctx, term, since, voters, needed)
}

// successes has, for each follower, the last request of one term to which it has replied
// with success. Requests are numbered in the order in which they begin.
type successes struct {
	mu      sync.Mutex
	count   uint64
	term    uint64                   // the newest in which this node has sent anything
	acked   map[raft.ServerID]uint64 // request by server id
	changed chan struct{}            // closed when acked changes; nil while no call waits
}

// next numbers a request, or the beginning of a wait.
func (s *successes) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}

// note records that a server has replied to a request of a term with success.
func (s *successes) note(serverID raft.ServerID, term, request uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if term < s.term {
		return
	}
	if term > s.term || s.acked == nil {
		s.term, s.acked = term, map[raft.ServerID]uint64{}
	}
	if s.acked[serverID] >= request {
		return
	}
	s.acked[serverID] = request
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// wait blocks until as many of the servers as are needed have replied in the term to a
// request that is numbered after since.
func (s *successes) wait(ctx context.Context, term, since uint64, servers []raft.ServerID, needed int) error {
	for {
		s.mu.Lock()
		if s.term > term {
			s.mu.Unlock()
			return raft.ErrNotLeader
		}
		have := 0
		for _, id := range servers {
			if s.term == term && s.acked[id] > since {
				have++
			}
		}
		if have < needed && s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if have >= needed {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.New("no majority of the voters has replied in time")
		}
	}
}
