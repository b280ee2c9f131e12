package cluster

import (
	"context"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// The cluster's id, version, forgotten members, removed nodes and admission are in the state machine
// of the first shard.

func (n *Node) clusterID() string { return n.shard.machine.ClusterID() }

func (n *Node) proposeClusterID(ctx context.Context, id string) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: id}}})
}

func (n *Node) proposeForget(ctx context.Context, serverID, nodeID string) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_ForgetMember{ForgetMember: &jobpb.ForgetMember{ServerId: serverID, NodeId: nodeID}}})
}

func (n *Node) proposeAdmit(ctx context.Context, nodeID string) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_AdmitNode{AdmitNode: &jobpb.AdmitNode{NodeId: nodeID}}})
}

func (n *Node) proposeUse(ctx context.Context, invitation, serverID string) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_EndInvitation{EndInvitation: &jobpb.EndInvitation{Id: invitation, ServerId: serverID}}})
}

func (n *Node) proposeVersion(ctx context.Context, to uint32) error {
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: to}}})
}

// proposeClockReset sets the queue's clock back.
func (n *Node) proposeClockReset(ctx context.Context, to time.Time) error {
	op := &jobpb.ResetClock{ToMs: to.UnixMilli(), Epoch: n.shard.machine.Applied().ClockEpoch}
	return n.doOne(ctx, &jobpb.Op{Kind: &jobpb.Op_ResetClock{ResetClock: op}})
}

func (n *Node) doOne(ctx context.Context, op *jobpb.Op) error {
	rs, err := n.shard.Do(ctx, []*jobpb.Op{op})
	if err != nil {
		return err
	}
	return job.ResultError(rs[0])
}
