package membership

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/ackguard"
	"tarry/cluster/membership/memberpb"
)

// Acks are what servers have acknowledged in all groups, as this node knows it (ackguard.Guard).
// Every status call carries them.
type Acks interface {
	Known() []ackguard.Ack
	Of(serverID string) []ackguard.Ack // one a group
	Merge([]ackguard.Ack)
}

// AskAcks asks the other servers of a configuration what this node has acknowledged,
// before Raft starts, and merges what they know. It waits two seconds at most for
// those that do not reply; their acks are merged later.
func (m *Membership) AskAcks(ctx context.Context, servers []raft.Server) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range servers {
		if s.ID == m.self() {
			continue
		}
		wg.Go(func() {
			resp, err := m.ask(ctx, string(s.ID), string(s.Address))
			if err != nil {
				m.cfg.Logger.Debug("no answer to what this node has acknowledged", "server", s.ID, "error", err)
				return
			}
			m.mergeAcks(resp.Acks)
		})
	}
	wg.Wait()
}

// mergeAcks merges the acks that another node knows. The other node must be a member:
// a made-up ack could end this process, or another's.
func (m *Membership) mergeAcks(from []*memberpb.Ack) {
	list := make([]ackguard.Ack, 0, len(from))
	for _, a := range from {
		list = append(list, ackguard.Ack{Group: a.GetGroup(), ServerID: a.GetServerId(), Term: a.GetTerm(), Index: a.GetIndex()})
	}
	m.cfg.Acks.Merge(list)
}

// acksFor returns the acks in a status call to a server: all that this node knows,
// including those of that server.
func (m *Membership) acksFor(serverID string) (list []*memberpb.Ack) {
	known := m.cfg.Acks.Known()
	if serverID != "" {
		known = append(known, m.cfg.Acks.Of(serverID)...)
	}
	for _, a := range known {
		list = append(list, &memberpb.Ack{ServerId: a.ServerID, Term: a.Term, Index: a.Index, Group: a.Group})
	}
	return list
}
