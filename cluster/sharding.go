package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/datadir"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
	"tarry/job"
	"tarry/job/jobpb"
)

// How a cluster with several shards begins. Its first leader of group 0 names the cluster: the entry
// also has the number of shards and the voters. Each node that is one of these begins the data
// groups with them, so that all have the same first configuration, and such a group elects a leader once
// a majority of them has begun it. That leader records in the group's state which group of which
// cluster it is, before anything else. A node that joins later begins no group: it gets all from the
// leaders.

// beginGroups begins the data groups once the cluster is named, until this node stops.
func (n *Node) beginGroups() {
	for {
		select {
		case <-n.clusterNews:
		case <-n.ctx.Done():
			return
		}
		if voters := n.firstVoters(); voters != nil {
			for _, g := range n.dataGroups() {
				g.begin(voters)
			}
			return
		}
	}
}

// firstVoters returns the voters of a named cluster's first configuration.
func (n *Node) firstVoters() []raft.Server {
	var servers []raft.Server
	for _, v := range n.shard.machine.FirstVoters() {
		servers = append(servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(v.ServerId), Address: raft.ServerAddress(v.Address)})
	}
	return servers
}

// begin gives the group its first configuration if this node is in it and the group has no state yet.
func (g *group) begin(voters []raft.Server) {
	r, self := g.shard.raft, raft.ServerID(g.shard.cfg.ServerID)
	first := raft.Configuration{Servers: voters}
	if !raftconfig.Contains(first, self) || r.LastIndex() > 0 || r.CurrentTerm() > 0 {
		return
	}
	switch err := r.BootstrapCluster(first).Error(); {
	case err == nil:
		g.shard.log.Info("began the group", "voters", len(voters))
	case !errors.Is(err, raft.ErrCantBootstrap) && !errors.Is(err, raft.ErrRaftShutdown):
		g.shard.fatal(fmt.Errorf("begin group %d: %w", g.number, err))
	}
}

// checkShards ends the process if the cluster has another number of shards than this node. Nodes with
// another number are not taken in, so it is a directory of another cluster.
func (n *Node) checkShards() {
	if n.clusterID() == "" {
		return
	}
	if has := int(n.shard.machine.Shards()); has != n.shards() {
		n.cfg.Fatal(datadir.WithRejoin(fmt.Errorf("the cluster has %d shards, and this node was started with %d", has, n.shards()), n.cfg.DataDir))
	}
}

// shardingOf implements Host.Sharding.
func (n *Node) shardingOf(g *group) (clusterID string, s *jobpb.Sharding) {
	if g.number == 0 {
		return "", nil
	}
	return n.clusterID(), &jobpb.Sharding{Shards: uint32(n.shards()), Group: g.number}
}

// shardingSince is the cluster version from which a state can be that of one of several shards.
const shardingSince = 2

// becomeGroup records in the state of a new data group which group it is. It comes before anything
// else that this leader does: a state that has jobs cannot become that of a group.
func (s *Shard) becomeGroup(ctx context.Context) error {
	id, sharding := s.cfg.Host.Sharding()
	if sharding == nil || s.machine.ClusterID() != "" {
		return nil
	}
	if id == "" {
		return errors.New("this node does not know the cluster's id yet")
	}
	for v := s.machine.Version(); v < shardingSince; v++ {
		if err := s.decide(ctx, &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: v + 1}}}); err != nil {
			return err
		}
	}
	return s.decide(ctx, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: id, Sharding: sharding}}})
}

// decide has an operation committed and applied here.
func (s *Shard) decide(ctx context.Context, op *jobpb.Op) error {
	r, err := s.commitAlone(ctx, op)
	if err != nil {
		return err
	}
	return job.ResultError(r)
}

// oneShard returns an error if the cluster has several shards, for which something is not done yet.
func (n *Node) oneShard(what string) error {
	if n.shards() == 1 {
		return nil
	}
	return job.Errorf(job.CodeConflict, "this cluster has several shards, and with these %s yet", what)
}

// leaderlessFor is for how long a shard has no leader before that is a problem: elections take less.
const leaderlessFor = 5 * time.Second

// leaderlessShards returns which data groups have no leader that this node knows.
func (n *Node) leaderlessShards(now time.Time) (list []*report.Problem) {
	for _, g := range n.dataGroups() {
		l, _ := g.shard.leaders.Get()
		if since := g.shard.leaders.Since(now); l.ID == "" && since > leaderlessFor {
			list = append(list, report.NewProblem(report.ShardLeaderless, "", "shard %d has had no leader for %v: its jobs are neither taken nor delivered", g.number-1, since.Round(time.Second)))
		}
	}
	return list
}
