package membership

import (
	"context"
	"time"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/report"
	"tarry/job/jobpb"
)

// Facts is what the state machine knows about the cluster. No method blocks; the caller does not
// change what they return.
type Facts interface {
	ClusterID() string // empty: none was chosen
	Version() uint32   // the cluster version
	// Forgotten reports whether a server id was removed for good.
	Forgotten(serverID string) bool
	// RemovedNodes is when each node was removed that must not join again, in Unix milliseconds by
	// node id.
	RemovedNodes() map[string]int64
	// Admission is who may become a member; nil: anybody.
	Admission() *jobpb.Admission
	// Follows reports whether the cluster is a standby, whose version is that of its primary.
	Follows() bool
}

// Decisions changes the facts through the log. Each method but Shown proposes, and blocks until the
// entry is applied on this node or ctx ends.
type Decisions interface {
	// Shown returns an error until this node's state may be shown to clients. It blocks for some
	// seconds at most.
	Shown(ctx context.Context) error
	SetClusterID(ctx context.Context, id string) error
	// Forget removes a server for good. It also records that the node was removed, unless nodeID is
	// empty.
	Forget(ctx context.Context, serverID, nodeID string) error
	Admit(ctx context.Context, nodeID string) error
	// UseInvitation records that a server uses an invitation. The error has CodeNotFound or
	// CodeConditionFailed if it must not.
	UseInvitation(ctx context.Context, invitation, serverID string) error
	RaiseVersion(ctx context.Context, to uint32) error
	// ResetClock sets the queue's clock back; on the leader.
	ResetClock(ctx context.Context, to time.Time) error
}

// Condition is how this node is doing. No method blocks.
type Condition interface {
	Disk() diskpolicy.Health
	// Trouble returns why this node's Raft does not take part; empty: it does, as far as it is known.
	Trouble() string
	// Drained reports whether this node should not lead.
	Drained() bool
	// Problems returns more problems for Health.
	Problems(now time.Time) []*report.Problem
}

// BackupDir has the scheduled backups of this node. No method blocks.
type BackupDir interface {
	State() Backups
	// List returns what is in the directory, which the caller may change.
	List() *report.NodeBackups
}
