package groupcommit

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Committer writes batches as entries of this node's log, and completes them in the
// order of the log.
type Committer struct {
	o       CommitterOptions
	commits chan commit

	mu     sync.Mutex // held while an entry gets its time and its place in the log: both in one order
	closed bool
}

// CommitterOptions has the callbacks of a Committer.
type CommitterOptions struct {
	// Apply is Raft's.
	Apply func(entry []byte, timeout time.Duration) raft.ApplyFuture
	// Now returns the time that an entry carries, and the epoch of the clock.
	Now func() (now time.Time, epoch uint64)
	// Version returns the cluster version.
	Version func() uint32
	// Heard returns what an entry in that epoch says of the config group; nil: nothing.
	Heard func(epoch uint64) oplog.Heard
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

// Propose makes the batch one entry. It is a Route's Send, and the only way into the log: so each
// entry has the time of the clock that is guarded, and is known to those who depend on the times
// of the entries that are under way.
func (c *Committer) Propose(b *Batch, complete Complete) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		complete(nil, errStopping())
		return
	}
	now, epoch := c.o.Now()
	entry := oplog.AppendEntryTime(make([]byte, 0, b.Bytes+32), now, epoch, c.o.Version())
	if c.o.Heard != nil {
		entry = oplog.AppendHeard(entry, c.o.Heard(epoch))
	}
	f := c.o.Apply(b.AppendOps(entry), enqueueTimeout)
	// The channel has room for each batch that may be in flight. Without it this waits for Run.
	c.commits <- commit{future: f, start: time.Now(), complete: complete}
}

// ProposeAlone makes encoded operations one entry, which has no others. It does not wait for a turn
// among the batches.
func (c *Committer) ProposeAlone(ops []byte, count int, complete Complete) {
	c.Propose(&Batch{Bytes: len(ops), Count: count, requests: []*Request{{Ops: ops}}}, complete)
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
func (c *Committer) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	close(c.commits)
}

// outcome distinguishes what was not applied from what is unknown (see Raft's
// documentation of Apply and its errors).
func outcome(ofRaft error, f raft.ApplyFuture) ([]*jobpb.Result, error) {
	switch {
	case ofRaft == nil:
	case errors.Is(ofRaft, raft.ErrNotLeader),
		errors.Is(ofRaft, raft.ErrLeadershipTransferInProgress),
		errors.Is(ofRaft, raft.ErrEnqueueTimeout):
		return nil, leaderrpc.ErrNotLeader
	default:
		return nil, job.Unknown("the outcome is unknown: %w", ofRaft)
	}
	rs, ok := f.Response().([]*jobpb.Result)
	if !ok || rs == nil {
		return nil, job.Unknown("the outcome is unknown: this node stopped leading while the request was applied")
	}
	return rs, nil
}
