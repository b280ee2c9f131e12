package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/nodetls"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/internal/invitation"
	"tarry/job"
	"tarry/job/jobpb"
)

// The cluster's id, version, forgotten members, removed nodes and admission are in the state machine
// of the first shard: it is membership.Facts, and decisions change them.

func (n *Node) clusterID() string { return n.shard.machine.ClusterID() }

// decisions implements membership.Decisions.
type decisions struct {
	*Shard
	shards int
}

// sharding returns how many shards the cluster begins with, and with which voters; nil: one.
func (d decisions) sharding() *jobpb.Sharding {
	if d.shards <= 1 {
		return nil
	}
	s := &jobpb.Sharding{Shards: uint32(d.shards)}
	for _, server := range raftconfig.Latest(d.raft).Servers {
		if server.Suffrage == raft.Voter {
			s.Voters = append(s.Voters, &jobpb.Voter{ServerId: string(server.ID), Address: string(server.Address)})
		}
	}
	return s
}

func (d decisions) Shown(ctx context.Context) error { return d.shown(ctx) }

func (d decisions) SetClusterID(ctx context.Context, id string) error {
	op := &jobpb.SetCluster{ClusterId: id, Sharding: d.sharding()}
	return d.one(ctx, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: op}})
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

// condition implements membership.Condition.
type condition struct{ n *Node }

func (c condition) Disk() diskpolicy.Health {
	d := c.n.disk.State()
	h := diskpolicy.Health{Low: d.Low, Free: d.Free}
	for _, g := range c.n.groups {
		h.LogWrite = max(h.LogWrite, g.shard.stores.WriteTime())
	}
	return h
}

func (c condition) Trouble() string { return c.n.raftTrouble() }
func (c condition) Drained() bool   { return c.n.Draining() }

// Problems returns what this node knows that belongs into the cluster's health while it leads.
func (c condition) Problems(now time.Time) []*report.Problem {
	n := c.n
	list := append(n.mux.CertificateProblems(now), n.standbyProblems()...)
	list = append(list, n.leaderlessShards(now)...)
	if p := n.members.Foreign(now); p != nil {
		list = append(list, p)
	}
	for _, g := range n.groups {
		for _, use := range g.shard.machine.LimitUses() {
			if why := use.Reason(); why != "" {
				list = append(list, report.NewProblem(report.LimitNear, "", "%s%s", g.inShard(), why))
			}
		}
	}
	if n.cfg.Problems != nil {
		list = append(list, n.cfg.Problems()...)
	}
	return list
}

// invitation returns the reader of this node's invitation; nil: it has none. A node that is in a
// cluster needs none. The file is read each time, so an operator can replace it.
func (n *Node) invitation() func() (invitation.Secret, error) {
	if n.cfg.JoinInvitationFile == "" || n.hasState {
		return nil
	}
	return func() (invitation.Secret, error) { return invitation.ReadFile(n.cfg.JoinInvitationFile) }
}

// opensToAnyNode reports whether tokens keep clients out, and nothing keeps nodes out.
func (n *Node) opensToAnyNode() bool {
	return n.shard.machine.Auth().Mode() == jobpb.AuthMode_AUTH_ENFORCE && n.AdmissionMode() == jobpb.AdmissionMode_ADMISSION_OPEN && n.cfg.TLS.Mode != nodetls.Require
}

// checkInvitation returns an error if this node needs the file and cannot read it.
func (n *Node) checkInvitation() error {
	read := n.invitation()
	if read == nil {
		return nil
	}
	if _, err := read(); err != nil {
		return fmt.Errorf("the invitation (--join-invitation-file): %w", err)
	}
	return nil
}
