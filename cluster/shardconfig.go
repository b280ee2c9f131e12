package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/diskspace"
	"tarry/cluster/noderpc"
)

// shardConfig has the settings of a Shard and the callbacks into its node.
type shardConfig struct {
	Timing
	Number   uint32
	ServerID string // Raft id of this node
	NodeID   string
	Dir      string
	Cache    int64
	Tables   int // of the state that are open at a time
	Logger   *slog.Logger
	// MetricsTopics is how many topics have metrics of their own.
	MetricsTopics int
	Registry      prometheus.Registerer // gets the shard's metrics, each with the label shard
	Fatal         func(error)
	// Peer returns a client to a server at a cluster address.
	Peer func(ctx context.Context, serverID, addr string) (noderpc.NodeClient, error)
	// ClusterChanged is called when the cluster's id or its forgotten members
	// have changed. It must not block.
	ClusterChanged func()
	// AddsRefused returns, on the leader, why adds are refused now; empty: they are
	// accepted. Disk is the last measurement of the disk below Dir. Both are cheap.
	AddsRefused func() string
	// SentPart is called after each part of a state that was sent; nil: not called. For tests.
	SentPart         func()
	Disk             func() diskspace.State
	TransferAttempts func() uint64 // see membership.Membership
	// Wall is this node's clock. ConfirmClock asks the voters whether it is right; see
	// clockguard.Guard.Confirm.
	Wall           func() time.Time
	ConfirmClock   func(ctx context.Context) error
	MaxClockOffset time.Duration
	// ClockWentOff is called when Wall differs too much from the voters' clocks. It must
	// not block.
	ClockWentOff func()
	// ConfirmLeader reports in which term this node leads; see
	// ackguard.Guard.
	ConfirmLeader func(ctx context.Context) (term uint64, err error)
	// Lead runs while this node is the established leader, until ctx ends.
	Lead func(ctx context.Context)

	LogStore string // a logstore.Kind

	wrapLog func(raft.LogStore) raft.LogStore // see Config
	files   files
}
