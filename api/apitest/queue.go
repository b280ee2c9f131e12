package apitest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/fsm"
	"tarry/internal/rates"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
	"tarry/schedule"
)

// Queue is a queue of one process. The zero value is not usable; see New.
type Queue struct {
	job.Reads // its own Read

	t     testing.TB
	rates *rates.Recorder

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever a job may have become ready
	machine  *fsm.Machine
	index    uint64 // of the last entry applied
	fail     []error
	ops      []*jobpb.Op
	waiting  int
	timeouts func([]job.Timeout)
}

// New returns an empty queue, which is closed at the end of the test.
func New(t testing.TB) *Queue {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatalf("open a state machine in memory: %v", err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close the state machine: %v", err)
		}
	})
	q := &Queue{t: t, changed: make(chan struct{}), machine: m, rates: rates.NewRecorder()}
	q.Reads = job.Reads{Reader: q}
	return q
}

// FailNext makes the next calls fail with errs, one each, before they do anything. A nil
// error makes its call succeed.
func (q *Queue) FailNext(errs ...error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail = append(q.fail, errs...)
}

// Ops lists all operations that were applied by Do, in order.
func (q *Queue) Ops() []*jobpb.Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.ops)
}

// Waiting returns the number of reserves that wait now.
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

// apply applies ops as one entry of the log, after the leader's work for the schedules and an
// advance, which makes due jobs ready.
func (q *Queue) apply(ops ...*jobpb.Op) ([]*jobpb.Result, error) {
	if err := q.fireSchedules(); err != nil {
		return nil, err
	}
	results, err := q.enter(ops...)
	if err != nil {
		return nil, err
	}
	return results, q.fireSchedules()
}

// fireSchedules does the leader's work for the schedules that are due.
func (q *Queue) fireSchedules() error {
	for {
		now := time.Now().UnixMilli()
		names := q.machine.DueSchedules(now, 1)
		if len(names) == 0 {
			return nil
		}
		v := q.machine.View()
		info, _, err := v.Schedule(names[0])
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
		fired, err := q.enter(&jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: schedule.Plan(info, now, job.MaxScheduleRuns)}})
		if err == nil {
			err = job.ResultError(fired[0])
		}
		if err != nil {
			return err
		}
	}
}

// enter applies ops as one entry of the log, after an advance.
func (q *Queue) enter(ops ...*jobpb.Op) ([]*jobpb.Result, error) {
	data := oplog.AppendEntryHeader(nil, time.Now().UnixMilli())
	advance := &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1000}}}
	for _, op := range append([]*jobpb.Op{advance}, ops...) {
		var err error
		if data, err = oplog.AppendOp(data, op); err != nil {
			return nil, err
		}
	}
	q.index++
	results, changes, err := q.machine.Apply([]fsm.Entry{{Index: q.index, Term: 1, Data: data}}, true)
	if err != nil {
		return nil, err
	}
	for i := range changes.Events {
		q.rates.Record(time.Now().UnixMilli(), changes.Topics[i].Name, &changes.Events[i])
	}
	if q.timeouts != nil && len(changes.Timeouts) > 0 {
		q.timeouts(changes.Timeouts)
	}
	return results[0][1:], nil
}

// ObserveTimeouts lets f know of the reservations that expire, as cluster.Shard does. It is
// called before the queue is used.
func (q *Queue) ObserveTimeouts(f func([]job.Timeout)) { q.timeouts = f }

// Rates implements api.Queue.
func (q *Queue) Rates(topic string) rates.Series { return q.rates.Topic(time.Now(), topic) }

// TotalRates implements api.Queue.
func (q *Queue) TotalRates() rates.Series { return q.rates.Total(time.Now()) }

// Auth returns the tokens of clients and their settings.
func (q *Queue) Auth() *auth.State { return q.machine.Auth() }

// AuthChanged returns a channel that is closed when Auth may return another state.
func (q *Queue) AuthChanged() <-chan struct{} { return q.machine.AuthChanged() }

// named returns ops with the principal of ctx where they have none, as a node does it.
func (q *Queue) named(ctx context.Context, ops []*jobpb.Op) []*jobpb.Op {
	p := auth.FromContext(ctx)
	if p.IsAnonymous() {
		return ops
	}
	known := q.machine.Auth().Revision > 0
	ops = slices.Clone(ops)
	for i, op := range ops {
		if known && op.Principal == "" || oplog.NeedsAdmin(op) {
			ops[i] = &jobpb.Op{Kind: op.Kind, Principal: p.Encode()}
		}
	}
	return ops
}

// reserveOf returns the operation of r with the principal of ctx, unless it has one.
func reserveOf(ctx context.Context, r *jobpb.Reserve) *jobpb.Op {
	if p := auth.FromContext(ctx); !p.IsAnonymous() && r.Principal == "" {
		r = proto.CloneOf(r)
		r.Principal = p.Encode()
	}
	return &jobpb.Op{Kind: &jobpb.Op_Reserve{Reserve: r}}
}

// Do implements api.Queue.
func (q *Queue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	q.ops = append(q.ops, ops...)
	results, err := q.apply(q.named(ctx, ops)...)
	close(q.changed)
	q.changed = make(chan struct{})
	return results, err
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
	op := reserveOf(ctx, r)
	q.waiting++
	defer func() { q.waiting-- }()
	for {
		results, err := q.apply(op)
		if err != nil {
			return nil, err
		}
		if err := job.ResultError(results[0]); err != nil || len(results[0].Jobs) > 0 || wait == 0 {
			return results[0].Jobs, err
		}
		changed, due := q.changed, q.untilDue()
		q.mu.Unlock()
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

// FinishAndReserve implements api.Queue.
func (q *Queue) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, _ bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	ops := make([]*jobpb.Op, 0, len(finishes)+1)
	for _, f := range finishes {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}})
	}
	results, err := q.doAndReserve(ctx, ops, r)
	if err != nil {
		return nil, nil, err
	}
	n := len(finishes)
	return results[:n], results[n].Jobs, job.ResultError(results[n])
}

// DeleteAndReserve implements api.Queue.
func (q *Queue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	results, err := q.doAndReserve(ctx, []*jobpb.Op{{Kind: &jobpb.Op_Delete{Delete: d}}}, r)
	if err != nil {
		return nil, nil, err
	}
	return results[0], results[1].Jobs, job.ResultError(results[1])
}

// doAndReserve applies operations and a reserve as one entry.
func (q *Queue) doAndReserve(ctx context.Context, ops []*jobpb.Op, r *jobpb.Reserve) ([]*jobpb.Result, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	q.ops = append(q.ops, ops...)
	results, err := q.apply(append(slices.Clip(q.named(ctx, ops)), reserveOf(ctx, r))...)
	close(q.changed)
	q.changed = make(chan struct{})
	return results, err
}

// Watch implements api.Queue.
func (q *Queue) Watch() job.Watch { return q.machine.Watch() }

// SettingsVersion grows whenever settings of topics have changed.
func (q *Queue) SettingsVersion() uint64 { return q.machine.SettingsVersion() }

// Watching is the number of reservations that watches follow.
func (q *Queue) Watching() int { return q.machine.Watching() }

func (q *Queue) untilDue() time.Duration {
	wait := time.Hour
	for _, next := range []int64{q.machine.NextDue(), q.machine.NextSchedule()} {
		if next != 0 {
			wait = min(wait, time.Until(time.UnixMilli(next)))
		}
	}
	return wait
}

// Read implements api.Queue.
func (q *Queue) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.takeFailure(); err != nil {
		return nil, err
	}
	if _, err := q.apply(); err != nil {
		return nil, err
	}
	v := q.machine.View()
	defer func() {
		if err := v.Close(); err != nil {
			q.t.Errorf("close a view: %v", err)
		}
	}()
	return v.Read(r)
}
