package groupcommit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/cluster/alarm"
	"tarry/cluster/leaderrpc"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLeader holds what it is sent until the test completes it.
type fakeLeader struct {
	mu        sync.Mutex
	there     bool
	elsewhere bool // the leader is another node
	changed   chan struct{}
	sent      []sentBatch
}

type sentBatch struct {
	b        *Batch
	complete func([]*jobpb.Result, error)
}

func newFakeLeader(there bool) *fakeLeader {
	return &fakeLeader{there: there, changed: make(chan struct{})}
}

func (f *fakeLeader) route() (Route, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.there {
		return Route{}, f.changed
	}
	return Route{Forwards: f.elsewhere, Send: func(b *Batch, complete func([]*jobpb.Result, error)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent = append(f.sent, sentBatch{b, complete})
	}}, f.changed
}

func (f *fakeLeader) appear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there = true
	close(f.changed)
	f.changed = make(chan struct{})
}

// pop returns the oldest batch that was sent and not popped yet.
func (f *fakeLeader) pop(t *testing.T) sentBatch {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotEmpty(t, f.sent, "a batch must have been sent")
	b := f.sent[0]
	f.sent = f.sent[1:]
	return b
}

func (f *fakeLeader) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sent)
}

func results(first, n int) []*jobpb.Result {
	rs := make([]*jobpb.Result, n)
	for i := range rs {
		rs[i] = &jobpb.Result{Seq: uint64(first + i)}
	}
	return rs
}

type reply struct {
	calls int
	rs    []*jobpb.Result
	err   error
}

// inBubble runs body with a batcher in front of a fake leader, on a fake clock.
func inBubble(t *testing.T, there bool, body func(t *testing.T, f *fakeLeader, send func(ops, size int) *reply)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeLeader(there) // its channels must belong to the bubble
		b := New(f.route, func(*Batch) {}, alarm.NewTimer)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		send := func(ops, size int) *reply {
			a := &reply{}
			b.Submit(&Request{Ops: make([]byte, size), Count: ops, Callers: ops, HoldUntil: time.Now().Add(5 * time.Second), Deadline: time.Now().Add(5 * time.Second),
				Done: func(rs []*jobpb.Result, err error) { a.calls++; a.rs, a.err = rs, err }}, false)
			synctest.Wait()
			return a
		}
		body(t, f, send)
		cancel()
		for _, s := range f.sent {
			s.complete(nil, job.Unknown("stopped"))
		}
		<-done
	})
}

func TestASingleRequestIsSentAtOnce(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		a := send(2, 10)
		f.pop(t).complete(results(1, 2), nil)
		require.Equal(t, 1, a.calls)
		require.Len(t, a.rs, 2)
	})
}

func TestRequestsShareABatchWhileAnotherIsInFlight(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(1, 10)
		x, y := send(1, 10), send(3, 10)
		require.Equal(t, 1, f.waiting(), "small batches wait for each other")
		f.pop(t).complete(results(0, 1), nil)
		time.Sleep(gatherTime)
		synctest.Wait()
		shared := f.pop(t)
		require.Equal(t, 4, shared.b.Count)
		shared.complete(results(7, 4), nil)
		require.Equal(t, uint64(7), x.rs[0].Seq)
		require.Equal(t, []uint64{8, 9, 10}, []uint64{y.rs[0].Seq, y.rs[1].Seq, y.rs[2].Seq})
	})
}

func TestLargeBatchesDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		for range MaxInFlight + 2 {
			send(1, largeBatch)
		}
		require.Equal(t, MaxInFlight, f.waiting(), "but there is a bound")
	})
}

func TestForwardedBatchesDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		f.elsewhere = true
		for range MaxInFlight + 2 {
			send(1, 10)
		}
		require.Equal(t, MaxInFlight, f.waiting(), "but there is a bound")
	})
}

func TestBatchStaysBelowItsSize(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(1, 1)
		send(1, largeBatch-1)
		send(1, MaxBatchBytes-largeBatch+1)
		send(1, 1)
		send(1, 2*MaxBatchBytes)
		var counts []int
		for f.waiting() > 0 {
			s := f.pop(t)
			counts = append(counts, s.b.Count)
			s.complete(results(0, s.b.Count), nil)
			synctest.Wait()
		}
		require.Equal(t, []int{1, 2, 1, 1}, counts)
	})
}

func TestWithoutALeaderRequestsAreHeldAndThenRefused(t *testing.T) {
	inBubble(t, false, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		early := send(1, 10)
		time.Sleep(4 * time.Second)
		late := send(1, 10)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, early.calls)
		require.Equal(t, job.CodeNotApplied, job.CodeOf(early.err))
		require.Zero(t, late.calls)
		f.appear()
		synctest.Wait()
		f.pop(t).complete(results(1, 1), nil)
		require.NoError(t, late.err)
		require.Equal(t, 1, late.calls)
	})
}

func TestABatchThatNoLeaderAcceptedGoesToTheNextInOrder(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		a := send(1, 10)
		f.pop(t).complete(nil, leaderrpc.ErrNotLeader)
		require.Zero(t, a.calls)
		time.Sleep(2 * RetryPause)
		synctest.Wait()
		f.pop(t).complete(results(3, 1), nil)
		require.Equal(t, uint64(3), a.rs[0].Seq)
	})
}

func TestUnknownOutcomeReachesEveryRequestOnce(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		a := send(1, 10)
		f.pop(t).complete(nil, job.Unknown("leadership lost"))
		require.Equal(t, 1, a.calls)
		require.Equal(t, job.CodeUnknown, job.CodeOf(a.err))
		short := send(2, 10)
		f.pop(t).complete(results(0, 1), nil)
		require.Equal(t, job.CodeUnknown, job.CodeOf(short.err), "fewer results than operations")
	})
}

func TestWhenAddsAreRefusedTheRestOfTheBatchIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeLeader(true)
		b := New(f.route, func(*Batch) {}, alarm.NewTimer)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		send := func(adds bool, count int) *reply {
			a := &reply{}
			b.Submit(&Request{Ops: make([]byte, 10), Count: count, Adds: adds, HoldUntil: time.Now().Add(5 * time.Second), Deadline: time.Now().Add(5 * time.Second),
				Done: func(rs []*jobpb.Result, err error) { a.calls++; a.rs, a.err = rs, err }}, false)
			return a
		}
		add, finish, more := send(true, 1), send(false, 2), send(true, 1)
		synctest.Wait()
		f.pop(t).complete(nil, &job.Error{Code: job.CodeDiskLow})
		require.Equal(t, job.CodeDiskLow, job.CodeOf(add.err))
		require.Equal(t, job.CodeDiskLow, job.CodeOf(more.err))
		require.Zero(t, finish.calls)
		time.Sleep(2 * RetryPause)
		synctest.Wait()
		again := f.pop(t)
		require.Equal(t, 2, again.b.Count)
		again.complete(results(5, 2), nil)
		require.NoError(t, finish.err)
		require.Equal(t, uint64(5), finish.rs[0].Seq)
		cancel()
		<-done
	})
}

func TestPastTheBoundRequestsAreRefused(t *testing.T) {
	inBubble(t, false, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		for range MaxQueuedBytes / MaxEntryBytes {
			send(1, MaxEntryBytes)
		}
		a := send(1, 1)
		require.Equal(t, job.CodeOverloaded, job.CodeOf(a.err))
	})
	inBubble(t, false, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		var first *reply
		for range maxQueuedRequests {
			first = send(1, 1)
		}
		require.Zero(t, first.calls)
		a := send(1, 1)
		require.Equal(t, job.CodeOverloaded, job.CodeOf(a.err), "the number of small requests is bounded too")
	})
}

// Under overload a request may reach the front of the queue after its client has timed out.
func TestARequestThatWaitedTooLongIsRefused(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(1, 10)
		old := send(1, 10)
		time.Sleep(4 * time.Second)
		young := send(1, 10)
		time.Sleep(2 * time.Second)
		f.pop(t).complete(results(0, 1), nil)
		time.Sleep(gatherTime)
		synctest.Wait()
		require.Equal(t, 1, old.calls)
		require.Equal(t, job.CodeOverloaded, job.CodeOf(old.err))
		left := f.pop(t)
		require.Equal(t, 1, left.b.Count, "only the newer one is sent")
		left.complete(results(1, 1), nil)
		require.NoError(t, young.err)
	})
}

func TestAnEntryPastTheLimitIsRefused(t *testing.T) {
	for _, force := range []bool{false, true} {
		b := New(newFakeLeader(true).route, func(*Batch) {}, alarm.NewTimer)
		var got error
		b.Submit(&Request{Ops: make([]byte, MaxEntryBytes+1), Count: 1, Done: func(_ []*jobpb.Result, err error) { got = err }}, force)
		require.Equal(t, job.CodeTooLarge, job.CodeOf(got))
	}
}
