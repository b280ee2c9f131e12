package api

import (
	"context"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// Queue executes operations on the cluster's jobs. All methods may be called from many
// goroutines at once, on any node, leader or not. Every error is or wraps a *job.Error. Its
// code says either that nothing was done (not_applied, overloaded, disk_low) or that the
// outcome is unknown (unknown).
type Queue interface {
	// Do applies ops in their order and returns one result each. It blocks until a majority
	// has committed them, or ctx ends; then the outcome is unknown. An operation that is
	// refused has its error in its result (job.ResultError). An error means that no result
	// is known.
	Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error)

	// Reserve waits up to wait for ready jobs of the topics and reserves up to r.Max of
	// them. If there is none in time it returns an empty list. If ctx ends first, jobs that
	// were already assigned are released.
	Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error)

	// Watch returns a watch of reservations on this node.
	Watch() job.Watch

	// Reader serves reads; job.Reads has one method for each.
	job.Reader
}

// Operator executes the operators' calls on the cluster.
type Operator interface {
	Members(ctx context.Context) ([]job.Member, error)
	Health(ctx context.Context) (job.Health, error)
	// Clocks compares the nodes' clocks. It blocks for some seconds at most.
	Clocks(ctx context.Context) (job.Clocks, error)
	// ResetClock sets the queue's clock back to the clock of the majority of the nodes. It
	// fails with CodeConflict unless the queue's clock is too far ahead.
	ResetClock(ctx context.Context) error
	// TransferLeadership transfers leadership to the node id, or to the best follower if
	// that is empty. It blocks until the transfer is done.
	TransferLeadership(ctx context.Context, id string) error
	// RemoveMember removes a node for good. It fails if the quorum would be lost.
	RemoveMember(ctx context.Context, id string) error
	// Join makes this node join the cluster whose nodes have the gossip addresses addrs.
	Join(ctx context.Context, addrs []string) error
	// Leave removes this node from its cluster and stops it.
	Leave(ctx context.Context) error
	// Verify compares the state digests of all members at one log index.
	Verify(ctx context.Context) (job.Verification, error)
	// Readiness reports whether this node can serve. It asks no other node and does not
	// block.
	Readiness() job.Readiness
	// LeaderAddress is the host:port at which clients reach the leader, "" while this
	// node knows none. It does not block, and is cheap.
	LeaderAddress() string
}
