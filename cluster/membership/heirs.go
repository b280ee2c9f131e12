package membership

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/job"
)

// Heirs lists the other voters that may lead: those that reply and are not drained, the one
// with the longest log first. It blocks for a few seconds at most.
func (m *Membership) Heirs(ctx context.Context) []raft.ServerID {
	var nodes []gossip.Member
	for _, s := range m.configuration().Servers {
		if s.Suffrage != raft.Voter || string(s.ID) == m.cfg.ServerID {
			continue
		}
		addr, err := m.ServerAddr(s.ID)
		if err != nil {
			addr = s.Address
		}
		nodes = append(nodes, gossip.Member{Meta: gossip.Meta{NodeID: raftconfig.NodeID(s.ID), ServerID: string(s.ID), ClusterAddr: string(addr)}})
	}
	replies := slices.DeleteFunc(m.askAll(ctx, nodes), func(a *memberpb.StatusResponse) bool { return a == nil || a.Drained })
	slices.SortStableFunc(replies, func(a, b *memberpb.StatusResponse) int { return cmp.Compare(b.LastIndex, a.LastIndex) })
	var heirs []raft.ServerID
	for _, a := range replies {
		heirs = append(heirs, raft.ServerID(a.ServerId))
	}
	return heirs
}

// NoHeir is why a node must not be drained, or keeps leading though it is.
func NoHeir(nodeID string) error {
	return job.Errorf(job.CodeConflict, "no other voter replies and is not drained, so only %s can lead", nodeID)
}

// TransferFrom transfers leadership from this node, if it leads, to a live voter that is not
// drained, and waits until another node leads. Without such a voter it fails with
// CodeConflict, and this node goes on leading.
func (m *Membership) TransferFrom(ctx context.Context) error {
	if r := m.raft.Load(); r == nil || r.State() != raft.Leader {
		return nil
	}
	failed := NoHeir(m.cfg.NodeID)
	for _, heir := range m.Heirs(ctx) {
		err := m.transferHere(ctx, string(heir))
		if err == nil || errors.Is(err, errNotLeader) || errors.Is(err, raft.ErrNotLeader) {
			return nil
		}
		if failed = err; ctx.Err() != nil {
			break
		}
	}
	return failed
}
