package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/diskspace"
	"tarry/cluster/logstore"
	"tarry/cluster/membership"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/nodetls"
	"tarry/cluster/report"
	"tarry/cluster/standby"
	"tarry/cluster/topicmetrics"
	"tarry/cluster/transport"
	"tarry/fsm"
	"tarry/internal/s3"
	"tarry/schedule"
)

// MaxMetricsTopics bounds Config.MetricsTopics.
const MaxMetricsTopics = topicmetrics.MaxTopics

// MaxNodeIDBytes and MaxBootstrapExpect bound Config.NodeID and Config.BootstrapExpect.
const (
	MaxNodeIDBytes     = membership.MaxNodeID
	MaxBootstrapExpect = membership.MaxExpect
)

// WireVersion is the version of what nodes send to each other, StoreFormat that of the state on
// disk. Nodes of different wire versions refuse each other, and other formats of the state.
const (
	WireVersion        = transport.WireVersion
	StoreFormat uint32 = fsm.FormatVersion
)

// Config has a node's settings. Addresses are host:port.
type Config struct {
	NodeID  string // unique in the cluster, chosen by the operator
	DataDir string
	Version string // release of this binary, shown to operators

	ClusterAddr   string // listens for other nodes (Raft and RPC)
	GossipAddr    string // listens for memberlist, TCP and UDP
	AdvertiseHost string // the name by which others reach this node
	HTTPAdvertise string // advertised host:port of this node's HTTP API

	TLS nodetls.Config // of connections to and from other nodes

	// GossipKeys encrypt gossip; nil: it is in plain text. GossipVerify is the step of the
	// move to encrypted gossip.
	GossipKeys   *gossipkeys.Ring
	GossipVerify gossip.Verify

	Join            []string // gossip addresses of nodes to find the cluster by
	BootstrapExpect int      // voters of a new cluster; 0: only ever join
	// Shards is how many shards the cluster has that a new node starts or joins; 0: one. For an existing
	// directory it must be 0 or the number of its cluster.
	Shards int
	// JoinInvitationFile has the invitation of a node that is in no cluster; empty: it has none.
	JoinInvitationFile string

	// DiskLowWater is the free space of the disk below DataDir under which this
	// node counts as low.
	DiskLowWater diskspace.Mark

	// MaxClockOffset is how far the clock of a leader may be off the majority's; 0:
	// clockguard.DefaultMaxOffset. All nodes should use the same.
	MaxClockOffset time.Duration
	NonVoter       bool // only with Join: follow, and never vote

	// HoldVersion keeps the cluster version from being raised while this node is a
	// member, so that all nodes can go back to the release before.
	HoldVersion bool
	OpenFiles   OpenFiles

	// LogStore is the log store of a new data directory; empty: the default. For an
	// existing directory it must be empty or the one with which it was created.
	LogStore logstore.Kind

	// MetricsTopics is how many topics have metrics of their own; see topicmetrics.
	MetricsTopics int

	// Follow is where the log of the primary comes from, for a node of a standby; nil: nowhere.
	Follow standby.Source

	// Backups is the schedule of the backups that the leader makes; nil: it makes none.
	Backups *Backups

	CacheBytes int64 // block cache of the state machine; 0: its default

	Logger *slog.Logger

	// Fatal is called when continuing would risk data: after a failed or hung sync, or if
	// an entry cannot be applied. It must end the process.
	Fatal func(error)
	// Lead, if not nil, is called when the node begins to lead. It must return
	// promptly when ctx ends, because the node waits for it.
	Lead func(ctx context.Context, n *Node)
	// Problems, if not nil, returns more problems of the cluster while this node leads. It must
	// not block.
	Problems func() []*report.Problem
	// Left is called once, when this node has left its cluster on request. The process
	// should end then.
	Left func()

	// InvitationUsed is called on the leader when a node uses an invitation to join. It must not
	// block. nil: not called.
	InvitationUsed func(id, nodeID string)

	// For tests: the clock, the free and total bytes of the disk, wrappers of the log and
	// of the transport, times other than the defaults, how often members are checked,
	// the sizes of files, and what is called after each part of a state that was sent.
	wall          func() time.Time
	measureDisk   func(dir string) (free, total uint64, err error)
	wrapLog       func(raft.LogStore) raft.LogStore
	wrapTransport func(raft.Transport) raft.Transport
	timing        Timing
	membership    membership.Timing
	files         files
	sentPart      func()
}

// Backups is where and when the leader makes backups.
type Backups struct {
	Timetable *schedule.Timetable // of whole seconds
	Dir       string              // where, unless there is a Bucket
	Bucket    *s3.Bucket          // the same; nil: in Dir. The node closes it
	Keep      int                 // how many backups; at least 1
	FullEvery int                 // every so many backups one is whole; 1: all
	Rate      int64               // bytes a second; 0: without limit
}

// OpenFiles bounds the file descriptors that parts of a node use. Zero values are the
// defaults.
type OpenFiles struct {
	Tables int // of the state that are open at one time; 0: 1000
	Peers  int // connections of each kind that others made to the cluster port; 0: 1024
}

// files has the settings of a shard's files; zero values are the defaults.
type files struct {
	segmentBytes  int    // of the Raft log
	memTableBytes uint64 // of the state
	trailingBytes int64  // of the Raft log, after a snapshot
	snapshotBytes int64  // of the Raft log, between two snapshots

	hungAfter time.Duration // a write that takes longer hangs
}

func (f files) trailing() int64 { return cmp.Or(f.trailingBytes, trailingBytes) }
func (f files) snapshot() int64 { return cmp.Or(f.snapshotBytes, snapshotBytes) }

// Timing of one shard. The defaults suit nodes within one region; all nodes of a
// cluster should use the same.
type Timing struct {
	// Heartbeat is how long a follower waits for its leader before it starts an
	// election. Election is how long a candidate waits for votes.
	Heartbeat, Election time.Duration
	// Lease is how long a leader that cannot reach a majority continues to lead.
	Lease time.Duration
	// HoldTime is how long a request waits for a leader before it fails.
	HoldTime time.Duration
	// OpTimeout is how long a request waits for its outcome before that is
	// reported as unknown.
	OpTimeout time.Duration
}

// DefaultTiming detects a lost leader in about a second.
func DefaultTiming() Timing {
	return Timing{
		Heartbeat: 600 * time.Millisecond,
		Election:  600 * time.Millisecond,
		Lease:     400 * time.Millisecond,
		HoldTime:  5 * time.Second,
		OpTimeout: 15 * time.Second,
	}
}

const (
	// maxWaiters bounds the reserves that wait on one leader.
	maxWaiters = 100_000

	// logCacheEntries and logCacheBytes bound the entries that are kept in memory for
	// followers that are slightly behind.
	logCacheEntries = 128
	logCacheBytes   = 32 << 20

	// advanceSlice bounds the jobs that one Advance moves, so that a million jobs that are
	// due at once delay neither the log nor other topics.
	advanceSlice = 1000
)
