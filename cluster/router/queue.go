package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tarry/internal/rates"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/slot"
)

// Calls are what one group does and what all of them do together; api.Queue says what the methods do.
type Calls interface {
	Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error)
	Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error)
	FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error)
	DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error)
	Rates(topic string) rates.Series
	TotalRates() rates.Series
	job.Reader
}

// Group is one Raft group on this node.
type Group interface {
	Calls
	// WatchWith returns a watch of reservations that wakes by wake, which holds one.
	WatchWith(wake chan struct{}) job.Watch
	// KnowsLeader reports whether this node knows who leads the group, and whether that is this
	// node. It does not block.
	KnowsLeader() (known, here bool)
}

// Queue is the queue of a cluster with several shards. It implements api.Queue.
type Queue struct {
	job.Reads // its own Read

	config Group
	shards []Group
	turn   atomic.Uint32   // rotates what begins at any shard
	stays  []atomic.Uint32 // by shard, how many calls in a row finished and reserved in it
}

// New returns the queue over the config group and the shards, in their order. Their number is one that
// a cluster can have (slot.Check).
func New(config Group, shards []Group) *Queue {
	q := &Queue{config: config, shards: shards, stays: make([]atomic.Uint32, len(shards))}
	q.Reads = job.Reads{Reader: q}
	return q
}

func (q *Queue) shardOf(id string) int       { return int(slot.Shard(id, uint32(len(q.shards)))) }
func (q *Queue) shardOfSeq(seq uint64) int   { return int(slot.ShardOfSeq(seq, uint32(len(q.shards)))) }
func (q *Queue) shardOfSlot(slot uint32) int { return int(slot % uint32(len(q.shards))) }

// shardOfRef returns the shard of the job that a ref names. With an id and a seq both must name the
// job, so either will do.
func (q *Queue) shardOfRef(ref *jobpb.Ref) int {
	if seq := ref.GetSeq(); seq != 0 {
		return q.shardOfSeq(seq)
	}
	return q.shardOf(ref.GetId())
}

// inOrder returns all shards in the order in which to try them: those that this node leads, then
// those whose leader it knows, then the rest. Each call begins with another one of a kind.
func (q *Queue) inOrder() []int {
	n := len(q.shards)
	first := int(q.turn.Add(1) % uint32(n))
	var here, known, rest []int
	for i := range n {
		s := (first + i) % n
		switch leads, by := q.shards[s].KnowsLeader(); {
		case by:
			here = append(here, s)
		case leads:
			known = append(known, s)
		default:
			rest = append(rest, s)
		}
	}
	return append(append(here, known...), rest...)
}

// Rates implements api.Queue.
func (q *Queue) Rates(topic string) rates.Series {
	return q.sumRates(func(g Group) rates.Series { return g.Rates(topic) })
}

// TotalRates implements api.Queue.
func (q *Queue) TotalRates() rates.Series { return q.sumRates(Group.TotalRates) }

func (q *Queue) sumRates(of func(Group) rates.Series) rates.Series {
	series := make([]rates.Series, len(q.shards))
	for s, g := range q.shards {
		series[s] = of(g)
	}
	return rates.Together(series)
}

// each calls f for all shards at the same time, and returns when all calls have.
func (q *Queue) each(f func(shard int, g Group)) {
	var calls sync.WaitGroup
	for s, g := range q.shards {
		calls.Go(func() { f(s, g) })
	}
	calls.Wait()
}

// inShard adds to an error in which shard it happened.
func inShard(shard int, err error) error {
	var e *job.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("shard %d: %w", shard, err)
	}
	named := *e
	named.Message = fmt.Sprintf("shard %d: %s", shard, e.Message)
	return &named
}
