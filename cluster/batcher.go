package cluster

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// maxBatchBytes bounds the operations of one Raft entry. Larger entries
	// delay heartbeats behind them; hashicorp/raft suggests 512 KiB at most.
	// One request larger than this travels alone.
	maxBatchBytes = 256 << 10

	// maxPartBytes bounds what one call has in an entry, unless it is one operation. A
	// call's parts wait for one another, so fewer, larger ones are the faster way.
	maxPartBytes = 1 << 20

	// maxEntryBytes bounds that one, and so every entry. What passes the limits of
	// package job is below it; the log takes no entry of four times as much.
	maxEntryBytes = 16 << 20

	// maxInFlight is how many batches of one node may be under way at once. On
	// the leader the second and third leave only when they are large: they keep
	// the disk busy while the first waits for the network. Small ones would
	// only share the same disk and processor in smaller pieces; waiting for one
	// commit makes them one batch instead. A follower need not wait: the leader
	// makes one batch of what it gets from all (docs/benchmarks.md has figures).
	maxInFlight = 3

	// largeBatch is when waiting for company does not pay any more.
	largeBatch = 64 << 10

	// maxQueuedBytes bounds what waits in the batcher; past it requests are
	// refused as overload.
	maxQueuedBytes = 64 << 20

	// maxQueuedRequests bounds what small requests cost beside their bytes.
	maxQueuedRequests = 1 << 16

	// retryPause keeps the batcher from spinning while a leader that it knows
	// of does not take its batches.
	retryPause = 20 * time.Millisecond
)

// request is a run of operations that are proposed together.
type request struct {
	ops     []byte // framed by job.AppendOp
	count   int
	adds    bool      // there is an add among them
	local   bool      // only the leader itself may propose them (job.LeaderOnly)
	expires time.Time // when to give up if no leader has taken it
	late    time.Time // when it is too late to take it
	// done is called once, on any goroutine, and must not block.
	done func([]*jobpb.Result, error)
}

// batch is what one Raft entry, or one message to the leader, will hold.
type batch struct {
	requests []*request
	bytes    int
	count    int
}

// sender takes a batch towards the log. It must not block for the commit: it
// calls settle exactly once when the outcome is there. errRetry as the error
// means: nothing was done, and another leader may take it.
type sender func(b *batch, settle func([]*jobpb.Result, error))

// route is the way to the present leader.
type route struct {
	send sender // nil: there is no leader
	// forwards says that the leader is another node.
	forwards bool
}

// batcher is the group commit of one node: all requests that arrive while
// batches are under way share the next one. When nothing is under way a request
// leaves at once.
type batcher struct {
	// leader returns the way to the present leader and a channel that closes
	// when that changes.
	leader func() (route, <-chan struct{})

	mu     sync.Mutex
	queue  []*request
	bytes  int
	flying int  // batches in flight
	eager  bool // small batches need not wait for one another
	closed bool

	wake    chan struct{} // a batch may leave
	settled sync.WaitGroup
	sizes   func(requests, ops, bytes int) // metrics
}

func newBatcher(leader func() (route, <-chan struct{}), sizes func(requests, ops, bytes int)) *batcher {
	return &batcher{leader: leader, wake: make(chan struct{}, 1), sizes: sizes}
}

// submit queues r. It does not block. With force the bound on waiting bytes does
// not apply: what the leader itself needs to make progress must not be refused.
func (b *batcher) submit(r *request, force bool) {
	b.mu.Lock()
	var err error
	switch {
	case b.closed:
		err = job.NotApplied("the node is stopping")
	case len(r.ops) > maxEntryBytes:
		err = errEntryTooLarge(len(r.ops))
	case !force && (b.bytes+len(r.ops) > maxQueuedBytes || len(b.queue) >= maxQueuedRequests):
		err = errBusy()
	default:
		b.queue = append(b.queue, r)
		b.bytes += len(r.ops)
	}
	leaves := b.mayLeave()
	b.mu.Unlock()
	if err != nil {
		r.done(nil, err)
		return
	}
	if leaves {
		b.signal()
	}
}

// mayLeave says whether a batch may leave now; it needs b.mu.
func (b *batcher) mayLeave() bool {
	return len(b.queue) > 0 && (b.flying == 0 || b.flying < maxInFlight && (b.eager || b.bytes >= largeBatch))
}

func (b *batcher) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run sends batches until ctx ends; then it answers all that wait and returns
// when every batch under way has its outcome.
func (b *batcher) run(ctx context.Context) {
	defer b.close()
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		// The requests of one moment come from many goroutines. Those that can run
		// do so first and share the batch: a follower's messages hold half as
		// many operations again, and nobody waits when there is nobody.
		runtime.Gosched()
		for b.ready() {
			if !b.sendOne(ctx) {
				return
			}
		}
	}
}

func (b *batcher) ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mayLeave()
}

// sendOne sends the next batch, or waits for a leader that it can be sent to. It
// returns false when ctx has ended.
func (b *batcher) sendOne(ctx context.Context) bool {
	way, changed := b.leader()
	if way.send == nil {
		return b.awaitLeader(ctx, changed)
	}
	b.dropLate(time.Now())
	next, late := b.take(way.forwards)
	for _, r := range late {
		r.done(nil, errDeposed())
	}
	if next == nil {
		return true
	}
	b.sizes(len(next.requests), next.count, next.bytes)
	b.settled.Add(1)
	way.send(next, func(rs []*jobpb.Result, err error) {
		defer b.settled.Done()
		b.landed()
		b.settle(next, rs, err)
	})
	return true
}

// landed makes room for the next batch. It comes before the answers of the one
// that landed, so that the next is under way while they are given.
func (b *batcher) landed() {
	b.mu.Lock()
	b.flying--
	leaves := b.mayLeave()
	b.mu.Unlock()
	if leaves {
		b.signal()
	}
}

// awaitLeader waits for a change of leadership, and answers the requests whose
// time runs out meanwhile.
func (b *batcher) awaitLeader(ctx context.Context, changed <-chan struct{}) bool {
	alarm := time.NewTimer(b.expire(time.Now()))
	defer alarm.Stop()
	select {
	case <-changed:
	case <-alarm.C:
		b.expire(time.Now())
	case <-ctx.Done():
		return false
	}
	return true
}

// dropLate refuses the requests at the front that have waited for their turn for
// so long that their clients have probably given up: to commit them would only
// make those behind them late as well.
func (b *batcher) dropLate(now time.Time) {
	b.mu.Lock()
	n := 0
	for n < len(b.queue) && !b.queue[n].late.After(now) {
		b.bytes -= len(b.queue[n].ops)
		n++
	}
	late := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	b.mu.Unlock()
	for _, r := range late {
		r.done(nil, errBusy())
	}
}

// expire answers the requests that have waited too long for a leader and returns
// how long the next one still has.
func (b *batcher) expire(now time.Time) time.Duration {
	b.mu.Lock()
	var late []*request
	kept := b.queue[:0]
	next := time.Second
	for _, r := range b.queue {
		if left := r.expires.Sub(now); left <= 0 {
			late = append(late, r)
			b.bytes -= len(r.ops)
		} else {
			kept = append(kept, r)
			next = min(next, left)
		}
	}
	clear(b.queue[len(kept):])
	b.queue = kept
	b.mu.Unlock()
	for _, r := range late {
		r.done(nil, errNoLeader())
	}
	return next
}

// take removes the next batch from the queue; nil when it is empty. A batch that goes
// to another node leaves out what this one proposed as the leader that it was: the new
// leader would refuse it, and the batch that it is in.
func (b *batcher) take(forwards bool) (next *batch, late []*request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eager = forwards
	n, size := 0, 0
	for n < len(b.queue) && (n == 0 || size+len(b.queue[n].ops) <= maxBatchBytes) {
		size += len(b.queue[n].ops)
		n++
	}
	next = &batch{requests: make([]*request, 0, n)}
	for _, r := range b.queue[:n] {
		if forwards && r.local {
			late = append(late, r)
			continue
		}
		next.requests = append(next.requests, r)
		next.bytes += len(r.ops)
		next.count += r.count
	}
	rest := copy(b.queue, b.queue[n:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
	b.bytes -= size
	if len(next.requests) == 0 {
		return nil, late
	}
	b.flying++
	return next, late
}

// settle hands the outcome of a batch to its requests.
func (b *batcher) settle(bt *batch, rs []*jobpb.Result, err error) {
	switch {
	case err == errRetry:
		b.requeue(bt)
		return
	case job.CodeOf(err) == job.CodeDiskLow:
		bt = b.refuseAdds(bt, err)
		if bt.count > 0 {
			b.requeue(bt)
		}
		return
	}
	if err == nil && len(rs) != bt.count {
		err = job.Errorf(job.CodeUnknown, "the leader answered %d results for %d operations", len(rs), bt.count)
	}
	for _, r := range bt.requests {
		if err != nil {
			r.done(nil, err)
			continue
		}
		r.done(rs[:r.count:r.count], nil)
		rs = rs[r.count:]
	}
}

// refuseAdds answers the requests of a batch that add, and returns the others:
// they were refused for their company only.
func (b *batcher) refuseAdds(bt *batch, err error) *batch {
	rest := &batch{}
	for _, r := range bt.requests {
		if r.adds {
			r.done(nil, err)
			continue
		}
		rest.requests = append(rest.requests, r)
		rest.bytes += len(r.ops)
		rest.count += r.count
	}
	return rest
}

// requeue puts a batch of which nothing was done back to the front of the
// queue, for the next leader. Requests whose time is over are answered.
func (b *batcher) requeue(bt *batch) {
	time.AfterFunc(retryPause, func() {
		b.mu.Lock()
		closed := b.closed
		if !closed {
			b.queue = append(bt.requests, b.queue...)
			b.bytes += bt.bytes
		}
		b.mu.Unlock()
		if closed {
			for _, r := range bt.requests {
				r.done(nil, job.NotApplied("the node is stopping"))
			}
			return
		}
		b.expire(time.Now())
		b.signal()
	})
}

func (b *batcher) close() {
	b.settled.Wait()
	b.mu.Lock()
	b.closed = true
	left := b.queue
	b.queue, b.bytes = nil, 0
	b.mu.Unlock()
	for _, r := range left {
		r.done(nil, job.NotApplied("the node is stopping"))
	}
}
