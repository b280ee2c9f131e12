package apitest

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// Queue is a queue of one process. The zero value is not usable; see New.
type Queue struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever a job may have become ready
	jobs    map[uint64]*record
	topics  map[string]*jobpb.Topic
	lastSeq uint64
	fail    []error
	ops     []*jobpb.Op
	waiting int
}

type record struct {
	jobpb.Job
	generation uint32
}

// New makes an empty queue.
func New() *Queue {
	return &Queue{changed: make(chan struct{}), jobs: map[uint64]*record{}, topics: map[string]*jobpb.Topic{}}
}

// FailNext makes the next calls fail with errs, one each, before they do
// anything. A nil among them lets its call pass.
func (q *Queue) FailNext(errs ...error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail = append(q.fail, errs...)
}

// Ops lists all operations that were applied, in order.
func (q *Queue) Ops() []*jobpb.Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.ops)
}

// Waiting is the number of reserves that wait now.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

func (q *Queue) takeFailure() error {
	if len(q.fail) == 0 {
		return nil
	}
	err := q.fail[0]
	q.fail = q.fail[1:]
	return err
}

// Do implements api.Queue.
func (q *Queue) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	results := make([]*jobpb.Result, len(ops))
	for i, op := range ops {
		q.advance()
		q.ops = append(q.ops, op)
		results[i] = q.apply(op)
	}
	close(q.changed)
	q.changed = make(chan struct{})
	return results, nil
}

// Reserve implements api.Queue.
func (q *Queue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	q.waiting++
	defer func() { q.waiting-- }()
	for {
		q.advance()
		if jobs := q.take(r); len(jobs) > 0 || wait == 0 {
			return jobs, nil
		}
		changed, due := q.changed, q.untilDue()
		q.mu.Unlock()
		var err error
		over := false
		select {
		case <-ctx.Done():
			err = job.NotApplied("the wait was given up: %w", ctx.Err())
		case <-end.C:
			over = true
		case <-changed:
		case <-time.After(due):
		}
		q.mu.Lock()
		if err != nil || over {
			return nil, err
		}
	}
}

func (q *Queue) untilDue() time.Duration {
	next := time.Now().Add(time.Hour).UnixMilli()
	for _, j := range q.jobs {
		switch j.State {
		case jobpb.State_STATE_DELAYED:
			next = min(next, j.DueMs)
		case jobpb.State_STATE_RESERVED:
			next = min(next, j.ReservedUntilMs)
		}
	}
	return time.Until(time.UnixMilli(next))
}

// Job implements api.Queue.
func (q *Queue) Job(_ context.Context, id string, _ bool) (*jobpb.Job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	q.advance()
	j, refusal := q.find(&jobpb.Ref{Id: id})
	if refusal != nil {
		return nil, job.ResultError(refusal)
	}
	return j.CloneOf(), nil
}

// Topics implements api.Queue.
func (q *Queue) Topics(_ context.Context, after string, max int, _ bool) ([]*jobpb.Topic, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	var names []string
	for name := range q.topics {
		if strings.Compare(name, after) > 0 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var list []*jobpb.Topic
	for _, name := range names[:min(max, len(names))] {
		list = append(list, q.count(name))
	}
	return list, nil
}

// Topic implements api.Queue.
func (q *Queue) Topic(_ context.Context, name string, _ bool) (*jobpb.Topic, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	return q.count(name), nil
}
