package groupcommit

import (
	"context"
	"runtime"
	"sync"
	"time"

	"tarry/cluster/alarm"
	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
)

// Batcher is the group commit of one node: all requests that arrive while batches are
// in flight share the next one. When nothing is in flight a request is sent at once.
type Batcher struct {
	route   func() (Route, <-chan struct{})
	observe func(b *Batch)
	// newAlarm makes the alarm that ends a wait for callers: a timer of Go would end it up to two
	// milliseconds late.
	newAlarm func() *alarm.Alarm

	mu       sync.Mutex
	queue    turns
	inFlight int  // batches
	eager    bool // small batches need not wait for one another
	last     round
	backoff  backoff
	closed   bool

	wake      chan struct{}  // a batch can be sent
	completed sync.WaitGroup // of the batches in flight
}

// New returns a Batcher; call Run. route returns the Route to the present leader, and a
// channel that closes when that changes. observe is called with every batch that is sent.
// newAlarm is alarm.New, or alarm.NewTimer in a test with a fake clock.
func New(route func() (Route, <-chan struct{}), observe func(*Batch), newAlarm func() *alarm.Alarm) *Batcher {
	return &Batcher{route: route, wake: make(chan struct{}, 1), observe: observe, newAlarm: newAlarm}
}

// Submit queues r. It does not block. With force the bound on waiting bytes does
// not apply, because the leader's own operations must not be refused.
func (b *Batcher) Submit(r *Request, force bool) {
	err := CheckSize(len(r.Ops))
	b.mu.Lock()
	switch {
	case b.closed:
		err = errStopping()
	case err != nil:
	case !force && b.queue.full(r):
		err = errBusy()
	default:
		b.queue.add(r)
	}
	ready := b.ready()
	b.mu.Unlock()
	if err != nil {
		r.Done(nil, err)
		return
	}
	if ready {
		b.signal()
	}
}

// Waiting returns how many bytes of operations are queued.
func (b *Batcher) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.bytes
}

// ready reports whether a batch can be sent now. It is called with b.mu held.
func (b *Batcher) ready() bool {
	return b.queue.requests > 0 && (b.inFlight == 0 || b.inFlight < MaxInFlight && (b.eager || b.queue.bytes >= largeBatch))
}

func (b *Batcher) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run sends batches until ctx ends; then it completes all that wait and returns
// when every batch in flight has its outcome.
func (b *Batcher) Run(ctx context.Context) {
	defer b.close()
	ring := b.newAlarm()
	defer ring.Close()
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		// Let other runnable goroutines submit their requests first, so that they
		// share this batch. A follower's messages then hold half as many operations
		// again. It costs nothing when no other goroutine is runnable.
		runtime.Gosched()
		b.gather(ctx, ring)
		for {
			b.mu.Lock()
			ready := b.ready()
			b.mu.Unlock()
			if !ready {
				break
			}
			if !b.sendOne(ctx) {
				return
			}
		}
	}
}

// sendOne sends the next batch, or waits for a leader that it can be sent to. It
// returns false when ctx has ended.
func (b *Batcher) sendOne(ctx context.Context) bool {
	route, changed := b.route()
	if route.Send == nil {
		return b.awaitLeader(ctx, changed)
	}
	b.dropOverdue(time.Now())
	next, deposed := b.take(route.Forwards)
	for _, r := range deposed {
		r.Done(nil, errDeposed())
	}
	if next == nil {
		return true
	}
	b.observe(next)
	b.completed.Add(1)
	sent := time.Now()
	route.Send(next, func(rs []*jobpb.Result, err error) {
		defer b.completed.Done()
		b.release(round{callers: next.callers, sent: sent, ended: time.Now()})
		b.complete(next, rs, err)
	})
	return true
}

// release lets the next batch be sent. It is called before the outcomes of the
// completed one are delivered, so that the next is in flight meanwhile.
func (b *Batcher) release(ended round) {
	b.mu.Lock()
	b.inFlight--
	ended.waiting = b.queue.callers
	b.last = ended
	ready := b.ready()
	b.mu.Unlock()
	if ready {
		b.signal()
	}
}

// awaitLeader waits for a change of leadership. It completes the requests that time out
// meanwhile.
func (b *Batcher) awaitLeader(ctx context.Context, changed <-chan struct{}) bool {
	next := time.NewTimer(b.expire(time.Now()))
	defer next.Stop()
	select {
	case <-changed:
	case <-next.C:
		b.expire(time.Now())
	case <-ctx.Done():
		return false
	}
	return true
}

// complete passes the outcome of a batch to its requests.
func (b *Batcher) complete(bt *Batch, rs []*jobpb.Result, err error) {
	switch {
	case err == leaderrpc.ErrNotLeader:
		b.requeue(bt)
		return
	case job.CodeOf(err) == job.CodeDiskLow:
		if bt = refuseAdds(bt, err); bt.Count > 0 {
			b.requeue(bt)
		}
		return
	}
	if err == nil && len(rs) != bt.Count {
		err = job.Errorf(job.CodeUnknown, "the leader returned %d results for %d operations", len(rs), bt.Count)
	}
	for _, r := range bt.requests {
		if err != nil {
			r.Done(nil, err)
			continue
		}
		r.Done(rs[:r.Count:r.Count], nil)
		rs = rs[r.Count:]
	}
}

// refuseAdds completes the requests of a batch that add, and returns the others: they
// failed only because they shared the batch.
func refuseAdds(bt *Batch, err error) *Batch {
	rest := &Batch{}
	for _, r := range bt.requests {
		if r.Adds {
			r.Done(nil, err)
			continue
		}
		rest.add(r)
	}
	return rest
}
