package membership

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
)

// rounds has the last replies of all members to a question for their status. One round serves all
// data groups that this node leads.
type rounds struct {
	mu      sync.Mutex
	at      time.Time
	replies map[raft.ServerID]*memberpb.StatusResponse
}

// round returns the replies of the members that have replied lately, this node's own among them. It
// asks unless somebody has done so within half of Timing.Health, and blocks for askTimeout at most. The
// caller does not change the replies.
func (m *Membership) round(ctx context.Context) map[raft.ServerID]*memberpb.StatusResponse {
	m.rounds.mu.Lock()
	defer m.rounds.mu.Unlock()
	if time.Since(m.rounds.at) < m.cfg.Timing.Health/2 {
		return m.rounds.replies
	}
	servers := m.configuration().Servers
	nodes := make([]gossip.Member, len(servers))
	for i, s := range servers {
		addr, err := m.ServerAddr(s.ID)
		if err != nil {
			addr = s.Address
		}
		nodes[i].NodeID, nodes[i].ServerID, nodes[i].ClusterAddr = raftconfig.NodeID(s.ID), string(s.ID), string(addr)
	}
	replies := make(map[raft.ServerID]*memberpb.StatusResponse, len(servers))
	for i, a := range m.askAll(ctx, nodes) {
		if a != nil {
			replies[servers[i].ID] = a
		}
	}
	if ctx.Err() == nil {
		m.rounds.at, m.rounds.replies = time.Now(), replies
	}
	return replies
}
