package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/datadir"
	"tarry/cluster/diskspace"
	"tarry/cluster/noderpc"
	"tarry/job/jobpb"
)

// shardConfig has the settings of a Shard.
type shardConfig struct {
	Timing
	Number   uint32 // of the Raft group
	ServerID string // Raft id of this node
	NodeID   string
	Dir      string
	budget
	Logger *slog.Logger
	// MetricsTopics is how many topics have metrics of their own.
	MetricsTopics int
	Registry      prometheus.Registerer // gets the shard's metrics, each with the label shard
	Host          Host
	// SentPart is called after each part of a state that was sent; nil: not called. For tests.
	SentPart       func()
	MaxClockOffset time.Duration
	LogStore       string // a logstore.Kind

	wrapLog func(raft.LogStore) raft.LogStore // see Config
	files   files
}

// Host is what a shard needs of its node.
type Host interface {
	// Fatal is called when going on would risk data. It does not return in a process.
	Fatal(error)
	// Peer returns a client to a server at a cluster address.
	Peer(ctx context.Context, serverID, addr string) (noderpc.NodeClient, error)
	// ClusterChanged is called when the cluster's id or its forgotten members have changed. It does
	// not block.
	ClusterChanged()
	// AddsRefused returns, on the leader, why adds are refused now; empty: they are accepted. It is
	// cheap, as Disk is: the last measurement of the disk with the shard's files.
	AddsRefused() string
	Disk() diskspace.State
	TransferAttempts() uint64 // see membership.Membership
	// Wall is this node's clock. ConfirmClock asks the voters whether it is right; see
	// clockguard.Guard.Confirm. ClockWentOff is called when it differs too much from theirs, and
	// does not block.
	Wall() time.Time
	ConfirmClock(ctx context.Context) error
	ClockWentOff()
	// ConfirmLeader reports in which term this node leads; see ackguard.Guard.
	ConfirmLeader(ctx context.Context) (term uint64, err error)
	// Sharding returns the cluster's id and what the state of a data group is to have of it; nil: the
	// shard is of group 0, whose leader names the cluster. The id is empty while it is not known.
	Sharding() (clusterID string, s *jobpb.Sharding)
	// Config is the shard of the config group, which the group follows; nil: the group is that itself.
	Config() *Shard
	// Lead runs while this node is the established leader, until ctx ends.
	Lead(ctx context.Context)
}

// host is a node as the shard of one of its groups sees it.
type host struct {
	n *Node
	g *group
}

func (h host) Fatal(err error)       { h.n.cfg.Fatal(datadir.WithRoom(err, h.n.cfg.DataDir)) }
func (h host) AddsRefused() string   { return h.n.members.AddsRefused() }
func (h host) Disk() diskspace.State { return h.n.disk.State() }
func (h host) Wall() time.Time       { return h.n.cfg.wall() }
func (h host) ClockWentOff()         { h.n.members.Evaluate() }

func (h host) ClusterChanged() {
	if h.g.number == 0 {
		h.n.members.ClusterIDChanged()
		h.n.checkShards()
		poke(h.n.clusterNews)
	}
}

func (h host) TransferAttempts() uint64 {
	if h.g.member != nil {
		return h.g.member.TransferAttempts()
	}
	return h.n.members.TransferAttempts()
}

func (h host) ConfirmClock(ctx context.Context) error {
	if h.g.member != nil {
		return h.g.member.ClockGuard().Confirm(ctx)
	}
	return h.n.members.ClockGuard().Confirm(ctx)
}

func (h host) ConfirmLeader(ctx context.Context) (term uint64, err error) {
	return h.g.acks.ConfirmLeader(ctx)
}

func (h host) Sharding() (string, *jobpb.Sharding) { return h.n.shardingOf(h.g) }

func (h host) Peer(ctx context.Context, serverID, addr string) (noderpc.NodeClient, error) {
	c, err := h.n.frames.Get(ctx, serverID, addr)
	if err != nil {
		return nil, err
	}
	return noderpc.NewNodeClient(c), nil
}

func (h host) Config() *Shard {
	if h.g.number == 0 {
		return nil
	}
	return h.n.shard
}

// Lead does the node's work while it leads the group, until ctx ends.
func (h host) Lead(ctx context.Context) {
	n := h.n
	if h.g.member != nil {
		h.g.member.Lead(ctx)
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	if n.cfg.Lead != nil {
		work.Go(func() {
			if n.shard.awaitPromotion(ctx) {
				n.cfg.Lead(ctx, n)
			}
		})
	}
	work.Go(func() { n.follower.Run(ctx) })
	work.Go(func() { n.avoidLeading(ctx) })
	if err := n.members.Lead(ctx); err != nil && ctx.Err() == nil {
		n.log.Error("membership stopped leading", "error", err)
	}
}
