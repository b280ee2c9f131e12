package groupcommit

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// Committer writes batches as entries of this node's log, and completes them in the
// order of the log.
type Committer struct {
	o       CommitterOptions
	commits chan commit
}

// CommitterOptions has the callbacks of a Committer.
type CommitterOptions struct {
	// Apply is Raft's.
	Apply func(entry []byte, timeout time.Duration) raft.ApplyFuture
	// Now returns the time that an entry carries, and the epoch of the clock.
	Now func() (now time.Time, epoch uint64)
	// Version returns the cluster version.
	Version func() uint32
	// Observe is called with each outcome, as Raft reports it and as the batch gets it,
	// and the time since Propose.
	Observe func(took time.Duration, ofRaft, err error)
}

// commit is a batch of which Raft has not reported the outcome yet.
type commit struct {
	future   raft.ApplyFuture
	start    time.Time
	complete Complete
}

// NewCommitter returns a Committer for the batches of one Batcher; call Run.
func NewCommitter(o CommitterOptions) *Committer {
	return &Committer{o: o, commits: make(chan commit, MaxInFlight)}
}

// Propose makes the batch one entry. It is a Route's Send.
func (c *Committer) Propose(b *Batch, complete Complete) {
	now, epoch := c.o.Now()
	entry := job.AppendEntryTime(make([]byte, 0, b.Bytes+32), now, epoch, c.o.Version())
	f := c.o.Apply(b.AppendOps(entry), enqueueTimeout)
	// The channel has room for each batch that may be in flight.
	c.commits <- commit{future: f, start: time.Now(), complete: complete}
}

// Run completes batches until Close. Raft reports the outcome of every entry as long as it
// runs, so it must not stop before Run has ended.
func (c *Committer) Run() {
	for p := range c.commits {
		ofRaft := p.future.Error()
		rs, err := outcome(ofRaft, p.future)
		c.o.Observe(time.Since(p.start), ofRaft, err)
		p.complete(rs, err)
	}
}

// Close ends Run once all batches are complete. It is called when the Batcher has
// ended.
func (c *Committer) Close() { close(c.commits) }

// outcome distinguishes what was not applied from what is unknown (see Raft's
// documentation of Apply and its errors).
func outcome(ofRaft error, f raft.ApplyFuture) ([]*jobpb.Result, error) {
	switch {
	case ofRaft == nil:
	case errors.Is(ofRaft, raft.ErrNotLeader),
		errors.Is(ofRaft, raft.ErrLeadershipTransferInProgress),
		errors.Is(ofRaft, raft.ErrEnqueueTimeout):
		return nil, leaderrpc.ErrNotLeader
	case errors.Is(ofRaft, raft.ErrAbortedByRestore):
		// If the leader is lost now, another one may still commit the entry.
		return nil, job.Unknown("the outcome is unknown: a backup replaced the state while the request was under way")
	default:
		return nil, job.Unknown("the outcome is unknown: %w", ofRaft)
	}
	rs, ok := f.Response().([]*jobpb.Result)
	if !ok || rs == nil {
		return nil, job.Unknown("the outcome is unknown: this node stopped leading while the request was applied")
	}
	return rs, nil
}
