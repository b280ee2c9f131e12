package membership

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/internal/sleep"
)

// replies are what members have last said of themselves when they were asked for their status.
// Clients are sent to these addresses: a record in gossip can be forged.
type replies struct {
	mu sync.Mutex
	of map[string]reply // by server id
}

type reply struct {
	httpAddr, release string
	nonVoter          bool
}

// record keeps the reply of a member. servers are all members.
func (r *replies) record(resp *memberpb.StatusResponse, servers []raft.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]reply)
	}
	r.of[resp.ServerId] = reply{resp.HttpAddr, resp.Release, resp.NonVoter}
	if len(r.of) > len(servers) {
		maps.DeleteFunc(r.of, func(id string, _ reply) bool {
			return !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
		})
	}
}

// overrule replaces what gossip has of a server by what it has said itself. The address for clients
// of one that has not replied is empty.
func (m *Membership) overrule(n *gossip.Member) {
	if n.ServerID == m.cfg.ServerID {
		n.HTTPAddr, n.Version, n.NonVoter = m.cfg.HTTPAddr, m.cfg.Version, m.cfg.NonVoter
		return
	}
	m.replies.mu.Lock()
	defer m.replies.mu.Unlock()
	switch said, ok := m.replies.of[n.ServerID]; {
	case !ok:
		n.HTTPAddr = ""
	case said.httpAddr != "": // an earlier release only gossips it
		n.HTTPAddr, n.Version, n.NonVoter = said.httpAddr, said.release, said.nonVoter
	}
}

// followLeader asks each new leader for its status, for its address for clients, until ctx ends.
func (m *Membership) followLeader(ctx context.Context) {
	r := m.raft.Load()
	o := raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if _, ok := o.Data.(raft.LeaderObservation); ok {
			poke(m.toFollower)
		}
		return false
	})
	r.RegisterObserver(o)
	defer r.DeregisterObserver(o)
	type leading struct {
		serverID string
		term     uint64
	}
	var asked leading
	for {
		now := leading{term: r.CurrentTerm()}
		l, known := m.Leader()
		now.serverID = l.ServerID
		if known && now != asked && now.serverID != m.cfg.ServerID && m.Configured(now.serverID) {
			if _, err := m.ask(ctx, l.ServerID, l.ClusterAddr); err == nil {
				asked = now
			}
		}
		if !sleep.Until(ctx, m.cfg.Timing.Poll, m.toFollower) {
			return
		}
	}
}
