package api

import (
	"context"
	"io"
	"time"

	"tarry/cluster/report"
	"tarry/internal/rates"
	"tarry/job"
	"tarry/job/jobpb"
)

// Queue executes operations on the cluster's jobs. All methods may be called from many
// goroutines at once, on any node, leader or not. Every error is or wraps a *job.Error. Its
// code says either that nothing was done (not_applied, overloaded, disk_low) or that the
// outcome is unknown (unknown).
type Queue interface {
	// Do applies ops in their order and returns one result each. It blocks until a majority
	// has committed them, or ctx or the queue's own time limit ends; then the outcome is
	// unknown. An operation that is refused has its error in its result (job.ResultError). An
	// error means that no result is known. If ops go to several shards, what one of them returns as an
	// error is in the results of its operations instead (job.ErrorResult).
	Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error)

	// Reserve waits up to wait for ready jobs of the topics and reserves up to r.Max of
	// them. If there is none in time it returns an empty list. If ctx ends first, jobs that
	// were already assigned are released.
	Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error)

	// FinishAndReserve applies finishes in their order and then reserves up to r.Max of the
	// jobs that are ready then, in one entry of the log. It does not wait for jobs. With waits,
	// of a caller that waits if there are none, it may reserve what falls due until some
	// milliseconds after the entry. Results are those of the finishes, as in Do; an error means
	// that none is known. It blocks until a majority has committed the entry, also when ctx
	// ends, and for a few seconds at most.
	FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error)
	// DeleteAndReserve is FinishAndReserve, without waits, for one delete.
	DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error)

	// Rates returns how many jobs of a topic were added, delivered, finished and so on in
	// the last minutes, as far as this node knows; TotalRates does so for all topics
	// together. They do not block.
	Rates(topic string) rates.Series
	TotalRates() rates.Series

	// Watch returns a watch of reservations on this node.
	Watch() job.Watch

	// Reader serves reads; job.Reads has one method for each.
	job.Reader
}

// Operator executes the operators' calls on the cluster.
type Operator interface {
	Members(ctx context.Context) ([]*report.Member, error)
	Health(ctx context.Context) (*report.Health, error)
	// Clocks compares the nodes' clocks. It blocks for some seconds at most.
	Clocks(ctx context.Context) (*report.Clocks, error)
	// ResetClock sets the queue's clock back to the clock of the majority of the nodes. It
	// fails with CodeConflict unless the queue's clock is too far ahead.
	ResetClock(ctx context.Context) error
	// Events returns what this node has seen happen to the cluster after an event's number,
	// oldest first, as far as it is kept. It does not block.
	Events(after uint64) []job.ClusterEvent
	// SetDrained drains this node or ends its drain: while it is drained it is not ready,
	// and does not lead. It blocks until another node leads.
	SetDrained(ctx context.Context, drained bool) error
	// TransferLeadership transfers leadership to the node id, or to the best follower if
	// that is empty. It blocks until the transfer is done.
	TransferLeadership(ctx context.Context, id string) error
	// RemoveMember removes a node for good. It fails if the quorum would be lost.
	RemoveMember(ctx context.Context, id string) error
	// RemovedNodes lists the nodes that were removed and must not join again. AdmitNode lets
	// one of them join again.
	RemovedNodes(ctx context.Context) ([]*report.RemovedNode, error)
	AdmitNode(ctx context.Context, id string) error
	// AdmissionMode is what a node needs to become a member, as this node knows it. It does not
	// block.
	AdmissionMode() jobpb.AdmissionMode
	// Join makes this node join the cluster whose nodes have the gossip addresses addrs.
	Join(ctx context.Context, addrs []string) error
	// Leave removes this node from its cluster and stops it.
	Leave(ctx context.Context) error
	// Verify compares the state digests of all members at one log index.
	Verify(ctx context.Context) (job.Verification, error)
	// Keyring lists the gossip keys of the members. ChangeKeyring changes them on all
	// members that it reaches; key is the fingerprint of the key to use or to remove.
	Keyring(ctx context.Context) (*report.Keyring, error)
	ChangeKeyring(ctx context.Context, change report.KeyringChange, key string) (*report.Keyring, error)
	// Backup writes a backup of this node's state (docs/backup.md). It writes nothing before
	// it can serve, and blocks until the backup is complete or ctx ends.
	Backup(ctx context.Context, to io.Writer, o job.BackupOptions) error
	// Restore replaces the state of the whole cluster by that of the backup that from gives. It
	// blocks until that is read, checked and in force on a majority. An error reports whether the
	// state was replaced.
	Restore(ctx context.Context, from io.Reader, o job.RestoreOptions) (job.Replaced, error)
	// Log streams the log of this node to a standby, in the format of package cluster/logstream,
	// until ctx ends. It writes nothing before it has found that the standby can follow.
	Log(ctx context.Context, to job.LogWriter, o job.LogOptions) error
	// Standby returns what the leader knows of this cluster as a standby.
	Standby(ctx context.Context) (*report.Standby, error)
	// PromoteStandby ends the mode of a standby, and returns what was known before. While the
	// primary still sends its log it is refused, unless force is set.
	PromoteStandby(ctx context.Context, force bool) (*report.Standby, error)
	// ScheduledBackups lists the backups that the cluster has made by itself. It asks all
	// nodes, needs no leader, and blocks for some seconds at most.
	ScheduledBackups(ctx context.Context) *report.ScheduledBackups
	// Sharding returns how many shards the cluster has, and who leads them. It asks no other node and
	// does not block.
	Sharding() job.Sharding
	// Readiness reports whether this node can serve. It asks no other node and does not
	// block.
	Readiness() job.Readiness
	// LeaderAddress is the host:port at which clients reach the leader, "" while this
	// node knows none. It does not block, and is cheap.
	LeaderAddress() string
}
