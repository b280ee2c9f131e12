package membership

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// ConfirmLeader reports in which term this node leads, after a majority of the
// voters, itself among them, has answered a request in that term which this node
// sent after the call began. It blocks for a round trip, or until ctx ends; without
// a majority it is an error. With a single voter it asks nobody.
//
// Raft's VerifyLeader begins the round, but its verdict is too weak: it counts every
// success that comes in after the call, so also the answer to an older request, which
// may have lain in the receive buffer of a process that stood still while others
// elected a leader and acknowledged writes.
//
// Why an answer to a later request suffices: a follower looks at its term when it
// answers, which is after the call began, and it says success only in the leader's
// term. Until then it has voted in no later one. A later leader that was elected
// before the call would have needed the vote of one of this majority; so there was
// none, and nothing that is acknowledged by then is unknown to this node.
func (m *Membership) ConfirmLeader(ctx context.Context) (term uint64, err error) {
	r := m.raft.Load()
	if r == nil {
		return 0, errNotLeader
	}
	term = r.CurrentTerm()
	if r.State() != raft.Leader {
		return 0, errNotLeader
	}
	began := m.leaderAcks.next()
	r.VerifyLeader() // for the heartbeats that it sends at once
	if err := m.awaitMajority(ctx, term, began); err != nil {
		return 0, err
	}
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return 0, errNotLeader
	}
	return term, nil
}

// awaitMajority blocks until a majority of the voters, this node among them, has
// answered, in the term, a request that began after since.
func (m *Membership) awaitMajority(ctx context.Context, term, since uint64) error {
	voters, others := 0, []string(nil)
	for _, s := range m.configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(s.ID) != m.cfg.ServerID {
			others = append(others, string(s.ID))
		}
	}
	return m.leaderAcks.wait(ctx, term, since, others, voters/2)
}

// leaderAcks holds, of each follower, the last request of one term that it has
// answered with success. Requests are numbered in the order in which they begin.
type leaderAcks struct {
	mu      sync.Mutex
	count   uint64
	term    uint64            // the newest in which this node has sent anything
	acked   map[string]uint64 // request by server id
	changed chan struct{}     // closed when acked changes; nil while nobody waits
}

// next numbers a request, or the beginning of a wait.
func (a *leaderAcks) next() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	return a.count
}

// succeeded notes that a server has answered a request of a term with success.
func (a *leaderAcks) succeeded(serverID string, term, request uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term < a.term {
		return
	}
	if term > a.term || a.acked == nil {
		a.term, a.acked = term, map[string]uint64{}
	}
	if a.acked[serverID] >= request {
		return
	}
	a.acked[serverID] = request
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// wait blocks until so many of the servers as are needed have answered, in the term,
// a request that is numbered after since.
func (a *leaderAcks) wait(ctx context.Context, term, since uint64, servers []string, needed int) error {
	for {
		a.mu.Lock()
		if a.term > term {
			a.mu.Unlock()
			return errNotLeader
		}
		have := 0
		for _, id := range servers {
			if a.term == term && a.acked[id] > since {
				have++
			}
		}
		if have < needed && a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		if have >= needed {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.New("no majority of the voters has answered in time")
		}
	}
}
