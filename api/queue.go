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

	// Job finds a job by id. It is linearizable unless stale is set; then it
	// answers from this node's state, which may be behind.
	Job(ctx context.Context, id string, stale bool) (*jobpb.Job, error)

	// Jobs gives one page of jobs; job.CheckJobQuery says what may be asked for.
	// A page may be short, or empty, and still have a next.
	Jobs(ctx context.Context, q *jobpb.JobQuery, stale bool) (*jobpb.JobPage, error)

	// Topics lists up to max topics by name, starting after the name given.
	Topics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error)

	// Totals counts the topics, and the jobs of all of them by state. Its cost does
	// not depend on how many there are.
	Totals(ctx context.Context, stale bool) (*jobpb.Totals, error)

	// ConfiguredTopics is Topics for those that have settings, also without jobs.
	ConfiguredTopics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error)

	// Schedule finds a schedule by its name; not_found when there is none.
	Schedule(ctx context.Context, name string, stale bool) (*jobpb.ScheduleInfo, error)

	// Schedules lists up to max schedules by name, starting after the name given;
	// fewer when they have more than job.MaxScheduleListBytes together.
	Schedules(ctx context.Context, after string, max int, stale bool) ([]*jobpb.ScheduleInfo, error)

	// Topic gives the counts and settings of one topic; the counts are zero
	// when it has no jobs.
	Topic(ctx context.Context, name string, stale bool) (*jobpb.Topic, error)
}

// Inspector is what the beanstalkd protocol asks of the cluster beyond Queue.
// As with Queue, reads are linearizable unless stale is set, and every error is,
// or wraps, a *job.Error.
type Inspector interface {
	// JobBySeq finds a job by its seq; not_found when it is gone.
	JobBySeq(ctx context.Context, seq uint64, stale bool) (*jobpb.Job, error)

	// Peek shows the head of one of a topic's lists: the ready job that is
	// reserved next, also while the topic is paused; the delayed job that is
	// due first; the job that has been dead for the longest. not_found when
	// there is none; invalid when state is none of the three.
	Peek(ctx context.Context, topic string, state jobpb.State, stale bool) (*jobpb.Job, error)
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
