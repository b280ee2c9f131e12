package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// memory is a system in this process: a queue without processes.
type memory struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced by each put
	jobs    map[string][]memoryJob
	refuse  error
	counts  struct{ puts, deletes, both int }
}

type memoryJob struct {
	body string
	due  time.Time
}

func newMemory() *memory {
	return &memory{changed: make(chan struct{}), jobs: map[string][]memoryJob{}}
}

func (m *memory) topic(context.Context, string) error { return nil }
func (m *memory) pids() []int                         { return nil }
func (m *memory) stop() error                         { return nil }
func (m *memory) open(ctx context.Context, topic string, _ int) (queue, error) {
	return &memoryQueue{ctx, m, topic}, nil
}

type memoryQueue struct {
	ctx   context.Context
	m     *memory
	topic string
}

const memoryCall = 100 * time.Microsecond // of fake time

func (q *memoryQueue) Close() {}

func (q *memoryQueue) Put(body string, due time.Time) error {
	time.Sleep(memoryCall)
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	if q.m.refuse != nil {
		return q.m.refuse
	}
	q.m.counts.puts++
	q.m.jobs[q.topic] = append(q.m.jobs[q.topic], memoryJob{body, due})
	close(q.m.changed)
	q.m.changed = make(chan struct{})
	return nil
}

func (q *memoryQueue) PutMany(bodies []string, due func(int) time.Time) error {
	for i, body := range bodies {
		if err := q.Put(body, due(i)); err != nil {
			return err
		}
	}
	return nil
}

// take gives the first due job, or how long until one is due.
func (q *memoryQueue) take() (body string, wait time.Duration, changed chan struct{}) {
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	wait = time.Second
	for i, j := range q.m.jobs[q.topic] {
		until := time.Until(j.due)
		if until <= 0 {
			q.m.jobs[q.topic] = append(q.m.jobs[q.topic][:i:i], q.m.jobs[q.topic][i+1:]...)
			return j.body, 0, nil
		}
		wait = min(wait, until)
	}
	return "", wait, q.m.changed
}

func (q *memoryQueue) Reserve() (string, error) {
	for limit := time.Now().Add(time.Second); time.Now().Before(limit); {
		body, wait, changed := q.take()
		if body != "" {
			return body, nil
		}
		select {
		case <-changed:
		case <-time.After(wait):
		case <-q.ctx.Done():
			return "", q.ctx.Err()
		}
	}
	return "", nil
}

func (q *memoryQueue) Delete() error {
	time.Sleep(memoryCall)
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	q.m.counts.deletes++
	return nil
}

// memoryWorker deletes and reserves in one call.
type memoryWorker struct{ *memoryQueue }

func (q memoryWorker) DeleteAndReserve() (string, error) {
	q.m.mu.Lock()
	q.m.counts.both++
	q.m.mu.Unlock()
	time.Sleep(memoryCall)
	return q.Reserve()
}

type memoryOfWorkers struct{ *memory }

func (m memoryOfWorkers) open(ctx context.Context, topic string, _ int) (queue, error) {
	return memoryWorker{&memoryQueue{ctx, m.memory, topic}}, nil
}

func TestWorkloadsCountWhatTheSystemDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		p, err := measurement{workload: "put", connections: 4, duration: time.Second}.run(t.Context(), m)
		require.NoError(t, err)
		require.InDelta(t, 4*float64(time.Second/memoryCall), p.Rate, 100)
		require.InDelta(t, 0.1, p.Latency.P50, 0.01)
		require.Zero(t, p.Failures)

		m = newMemory()
		p, err = measurement{workload: "batch", connections: 2, duration: time.Second}.run(t.Context(), m)
		require.NoError(t, err)
		require.Zero(t, p.Jobs%batchSize)
		require.InDelta(t, 10, p.Latency.P50, 0.5, "of a hundred jobs")

		m = newMemory()
		p, err = measurement{workload: "cycle", connections: 3, duration: time.Second}.run(t.Context(), m)
		require.NoError(t, err)
		require.InDelta(t, m.counts.deletes, p.Jobs, 10)
		require.InDelta(t, m.counts.puts, p.Jobs, 10)
	})
}

func TestLatenessCountsFromTheDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := measurement{workload: "late", connections: 2, producers: 2, rate: 100, warmup: 2 * time.Second, duration: 3 * time.Second}
		p, err := late.run(t.Context(), newMemory())
		require.NoError(t, err)
		require.InDelta(t, 100, p.Rate, 2)
		require.Less(t, p.Lateness.Max, 1.0, "a memory is never late")
		require.Zero(t, p.Latency, "it is mostly waiting")

		m := newMemory()
		late.connections = 1
		_, err = late.run(t.Context(), memoryOfWorkers{m})
		require.NoError(t, err)
		require.Zero(t, m.counts.deletes)
		require.Greater(t, m.counts.both, 200)
	})
}

func TestAMeasurementWithoutAJobSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.refuse = errors.New("the disk is full")
		_, err := measurement{workload: "put", connections: 1, duration: time.Second}.run(t.Context(), m)
		require.ErrorContains(t, err, "the disk is full")
	})
}
