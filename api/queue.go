package api

import (
	"context"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// Queue is what the API needs of the cluster. All methods may be called from
// many goroutines at once, on any node, leader or not. Every error is, or wraps,
// a *job.Error; its code says whether nothing was done (not_applied, overloaded, disk_low)
// or nobody can tell (unknown).
type Queue interface {
	// Do applies ops in their order and returns one result each. It blocks
	// until they are committed by a majority, or ctx ends (then the outcome is
	// unknown). A result carries its own refusal (job.ResultError); an error
	// means that no result is known.
	Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error)

	// Reserve waits up to wait for ready jobs of the topics and reserves up to
	// r.Max of them. No job in time is an empty list, not an error. When ctx
	// ends first nothing stays reserved: what was assigned meanwhile goes back.
	Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error)

	// Watch makes a watch that follows reservations on this node until they end.
	Watch() job.Watch

	// Read answers a read; job.Reads has one method for each.
	job.Reader
}

// Operator is what the operators' calls need of the cluster.
type Operator interface {
	Members(ctx context.Context) ([]job.Member, error)
	Health(ctx context.Context) (job.Health, error)
	// Clocks compares the nodes' clocks. It blocks for some seconds at most.
	Clocks(ctx context.Context) (job.Clocks, error)
	// ResetClock sets the queue's clock back to the majority's of the nodes. It is
	// refused with CodeConflict unless it has run away.
	ResetClock(ctx context.Context) error
	// TransferLeadership hands leadership to the node id, or to the best
	// follower when it is empty. It blocks until the move is done.
	TransferLeadership(ctx context.Context, id string) error
	// RemoveMember removes a node for good; it refuses to break the quorum.
	RemoveMember(ctx context.Context, id string) error
	// Join makes this node join the cluster that listens for gossip at addrs.
	Join(ctx context.Context, addrs []string) error
	// Leave removes this node from its cluster and stops it.
	Leave(ctx context.Context) error
	// Verify compares the state digests of all members at one log index.
	Verify(ctx context.Context) (job.Verification, error)
	// Readiness answers from this node alone and does not block.
	Readiness() job.Readiness
	// LeaderAddress is the host:port at which clients reach the leader, "" while this
	// node knows none. It does not block, and is cheap.
	LeaderAddress() string
}
