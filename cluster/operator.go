package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/job"
	"tarry/job/jobpb"
)

// Members implements api.Operator.
func (n *Node) Members(ctx context.Context) ([]*report.Member, error) { return n.members.Members(ctx) }

// Health implements api.Operator.
func (n *Node) Health(ctx context.Context) (*report.Health, error) { return n.members.Health(ctx) }

// Clocks implements api.Operator.
func (n *Node) Clocks(ctx context.Context) (*report.Clocks, error) { return n.members.Clocks(ctx) }

// Events implements api.Operator.
func (n *Node) Events(after uint64) []job.ClusterEvent { return n.events.After(after) }

// ResetClock implements api.Operator.
func (n *Node) ResetClock(ctx context.Context) error { return n.members.ResetClock(ctx) }

// Keyring implements api.Operator.
func (n *Node) Keyring(ctx context.Context) (*report.Keyring, error) { return n.members.Keyring(ctx) }

// ChangeKeyring implements api.Operator.
func (n *Node) ChangeKeyring(ctx context.Context, change report.KeyringChange, key string) (*report.Keyring, error) {
	return n.members.ChangeKeyring(ctx, change, key)
}

// ScheduledBackups implements api.Operator.
func (n *Node) ScheduledBackups(ctx context.Context) *report.ScheduledBackups {
	return n.members.ScheduledBackups(ctx)
}

// TransferLeadership implements api.Operator.
func (n *Node) TransferLeadership(ctx context.Context, id string) error {
	return n.members.Transfer(ctx, id)
}

// Verify implements api.Operator.
func (n *Node) Verify(ctx context.Context) (job.Verification, error) {
	if err := n.oneShard("states are not compared"); err != nil {
		return job.Verification{}, err
	}
	return n.shard.Verify(ctx)
}

// RemoveMember implements api.Operator.
func (n *Node) RemoveMember(ctx context.Context, id string) error { return n.members.Remove(ctx, id) }

// RemovedNodes implements api.Operator.
func (n *Node) RemovedNodes(ctx context.Context) ([]*report.RemovedNode, error) {
	return n.members.RemovedNodes(ctx)
}

// AdmitNode implements api.Operator.
func (n *Node) AdmitNode(ctx context.Context, id string) error { return n.members.Admit(ctx, id) }

// AdmissionMode implements api.Operator.
func (n *Node) AdmissionMode() jobpb.AdmissionMode { return n.shard.machine.Admission().GetMode() }

// Join implements api.Operator.
func (n *Node) Join(ctx context.Context, addrs []string) error { return n.members.Join(ctx, addrs) }

// Leave implements api.Operator. Before it returns nil it calls Config.Left.
func (n *Node) Leave(ctx context.Context) error {
	if err := n.members.Leave(ctx); err != nil {
		return err
	}
	if err := n.data.MarkLeft(); err != nil {
		return job.Errorf(job.CodeInternal, "the node has left the cluster, but its directory could not be marked: %w", err)
	}
	n.BeginStop()
	if n.cfg.Left != nil {
		n.cfg.Left()
	}
	return nil
}

// Sharding implements api.Operator.
func (n *Node) Sharding() job.Sharding {
	s := job.Sharding{Shards: n.shards()}
	for _, g := range n.groups {
		row := job.Group{Number: g.number, Shard: int(g.number) - 1, Term: g.shard.raft.CurrentTerm()}
		if n.shards() == 1 {
			row.Shard = 0
		}
		if l, _ := g.shard.leaders.Get(); l.ID != "" {
			row.Leader, row.Address = raftconfig.NodeID(l.ID), n.members.HTTPAddr(l.ID)
		}
		s.Groups = append(s.Groups, row)
	}
	return s
}

// votes reports whether this node is a voter of all groups.
func (n *Node) votes() bool {
	return !slices.ContainsFunc(n.groups, func(g *group) bool {
		return !slices.Contains(raftconfig.Voters(raftconfig.Latest(g.shard.raft)), raft.ServerID(n.data.ServerID()))
	})
}

// lostForGood is what to do if there will be no leader; empty for the first minute.
func (n *Node) lostForGood(waited time.Duration) string {
	switch {
	case waited < time.Minute:
		return ""
	case n.shard.raft.LastIndex() > 0:
		return "; if the disks of a majority are lost for good, see docs/operations.md, A lost majority (tarry recover)"
	default:
		return "; this node has no data: if the disks of a majority of its cluster are lost for good, see docs/operations.md, A lost majority (tarry recover), on a node that has some"
	}
}

// Readiness implements api.Operator.
func (n *Node) Readiness() job.Readiness {
	var r job.Readiness
	l, _ := n.shard.leaders.Get()
	r.Leader = raftconfig.NodeID(l.ID)
	r.Waited = n.shard.leaders.Since(time.Now())
	switch {
	case n.stopping.Load():
		r.Reasons = append(r.Reasons, "the node is draining: it is about to stop")
	case n.draining.On():
		r.Reasons = append(r.Reasons, "an operator has drained the node; \"tarry cluster drain --undo\" ends that")
	case n.members.Removed():
		r.Reasons = append(r.Reasons, "the node has been removed from its cluster; to let it join again as a new member, stop it, run \"tarry cluster admit "+n.cfg.NodeID+"\" and move its data directory away")
	case n.members.Refusal() != "":
		r.Reasons = append(r.Reasons, n.members.Refusal())
	case l.ID == "":
		r.Reasons = append(r.Reasons, fmt.Sprintf("no leader has been known for %s: the cluster is forming or electing, or a majority cannot be reached", r.Waited.Round(time.Millisecond))+n.lostForGood(r.Waited))
	case n.clusterID() == "":
		// A backup, a join or a standby that comes now would be refused.
		r.Reasons = append(r.Reasons, "the cluster has no id yet: its first leader gives it one, and this node has not heard of it")
	case !n.cfg.NonVoter && !n.votes():
		// Who replaces the disks of one node after the other goes by this.
		r.Reasons = append(r.Reasons, "the node does not vote yet: it must have the leader's state and stay caught up for a while first; until then do not stop another voter")
	}
	for _, g := range n.groups {
		if why := g.shard.replay.why(); why != "" {
			r.Reasons = append(r.Reasons, g.inShard()+why)
		}
	}
	r.Ready = len(r.Reasons) == 0
	r.Warnings = n.warnings()
	return r
}
