package cluster

import (
	"context"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// The cluster's id, version, forgotten members, removed nodes and admission are in the state machine
// of the first shard: it is membership.Facts, and decisions change them.

func (n *Node) clusterID() string { return n.shard.machine.ClusterID() }

// decisions implements membership.Decisions.
type decisions struct{ *Shard }

func (d decisions) Shown(ctx context.Context) error { return d.shown(ctx) }

func (d decisions) SetClusterID(ctx context.Context, id string) error {
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: id}}})
}

func (d decisions) Forget(ctx context.Context, serverID, nodeID string) error {
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: serverID, NodeId: nodeID}}})
}

func (d decisions) Admit(ctx context.Context, nodeID string) error {
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_AdmitNode{AdmitNode: &jobpb.AdmitNode{NodeId: nodeID}}})
}

func (d decisions) UseInvitation(ctx context.Context, invitation, serverID string) error {
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_EndInvitation{EndInvitation: &jobpb.EndInvitation{Id: invitation, ServerId: serverID}}})
}

func (d decisions) RaiseVersion(ctx context.Context, to uint32) error {
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: to}}})
}

func (d decisions) ResetClock(ctx context.Context, to time.Time) error {
	op := &jobpb.ResetClock{ToMs: to.UnixMilli(), Epoch: d.machine.Applied().ClockEpoch}
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: op}})
}

func (d decisions) one(ctx context.Context, op *jobpb.Op) error {
	rs, err := d.Do(ctx, []*jobpb.Op{op})
	if err != nil {
		return err
	}
	return job.ResultError(rs[0])
}
