package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
)

// A node that an operator has removed must not return by itself: its certificate stays valid
// until it ends, and without TLS anybody can use its id. So the log has the ids of these
// nodes, and the leader adds none of them before an operator has admitted it. A node that has
// only lost its data was not removed, and is not in this list (replace).

// removedAt returns when a node was removed, in Unix milliseconds; 0: it may join.
func (m *Membership) removedAt(nodeID string) int64 { return m.cfg.Facts.RemovedNodes()[nodeID] }

// checkAdmission returns an error if a node must not join.
func (m *Membership) checkAdmission(nodeID string) error {
	if at := m.removedAt(nodeID); at != 0 {
		return wasRemoved(nodeID, at)
	}
	return nil
}

// wasRemoved is the refusal of a node, for its log and for the cluster's health.
func wasRemoved(nodeID string, atMS int64) error {
	return fmt.Errorf("node %.64s was removed from the cluster at %s; to let it join again, run \"tarry cluster admit %.64s\"; otherwise stop it, or give it another node id",
		nodeID, time.UnixMilli(atMS).UTC().Format(time.RFC3339), nodeID)
}

// stillRuns returns what health says of a server that was removed with its node and whose process
// still runs; nil: n is none. Nothing waits for it, but it looks like a node that works.
func (m *Membership) stillRuns(n gossip.Member) *report.Problem {
	at := m.removedAt(n.NodeID)
	if at == 0 || n.ServerID == m.cfg.ServerID || !m.cfg.Facts.Forgotten(n.ServerID) || m.Configured(n.ServerID) {
		return nil
	}
	p := report.NewProblem(report.NodeRemoved, n.NodeID, "%s was removed from the cluster at %s, and still runs with its old data, which serves nobody: stop it; to use it again, run \"tarry cluster admit %s\" and move its data directory away",
		n.NodeID, time.UnixMilli(at).UTC().Format(time.RFC3339), n.NodeID)
	p.AtMs = at
	return p
}

// recordRefusal stores why the cluster does not take this node in; nil: it may.
func (m *Membership) recordRefusal(err error) {
	if err == nil {
		m.refusal.Store(nil)
		return
	}
	m.refusal.Store(new(err.Error()))
}

// Refusal returns why the cluster does not take in this node, which is in none, before an
// operator acts; empty: nothing is known to be in its way.
func (m *Membership) Refusal() string {
	if why := m.refusal.Load(); why != nil && !m.hasState() {
		return *why
	}
	return ""
}

// RemovedNodes lists the nodes that were removed and must not join again, in the order of
// their ids. Without a leader it returns what this node knows.
func (m *Membership) RemovedNodes(ctx context.Context) ([]*report.RemovedNode, error) {
	resp, err := viaLeader(ctx, m, readCall, &memberpb.RemovedRequest{}, (*server).Removed, memberpb.MembershipClient.Removed)
	if errors.Is(err, leaderrpc.ErrNoLeader) && ctx.Err() == nil {
		if err := m.cfg.Decisions.Shown(ctx); err != nil {
			return nil, err
		}
		return m.removedHere(), nil
	}
	return resp.GetNodes(), err
}

func (m *Membership) removedHere() (list []*report.RemovedNode) {
	for id, at := range m.cfg.Facts.RemovedNodes() {
		list = append(list, &report.RemovedNode{Id: id, AtMs: at})
	}
	slices.SortFunc(list, func(a, b *report.RemovedNode) int { return cmp.Compare(a.Id, b.Id) })
	return list
}

// Admit lets a node that was removed join again, with an empty data directory. It is refused
// with CodeNotFound if no such node was removed.
func (m *Membership) Admit(ctx context.Context, nodeID string) error {
	_, err := viaLeader(ctx, m, writeCall, &memberpb.AdmitRequest{Id: nodeID}, (*server).Admit, memberpb.MembershipClient.Admit)
	return err
}

func (m *Membership) admitHere(ctx context.Context, nodeID string) error {
	r := m.raft.Load()
	if r == nil || r.State() != raft.Leader {
		return errNotLeader
	}
	end, err := m.beginChange(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := m.cfg.Decisions.Admit(ctx, nodeID); err != nil {
		return err
	}
	m.cfg.Logger.Info("node admitted: it may join again", "member", nodeID)
	poke(m.toLeader)
	return nil
}
