package cluster

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/logstore"
	"tarry/cluster/noderpc"
	"tarry/dispatch"
	"tarry/job"
	"tarry/job/jobpb"
)

// fakeLeader holds what it is sent until the test settles it.
type fakeLeader struct {
	mu        sync.Mutex
	there     bool
	elsewhere bool // the leader is another node
	changed   chan struct{}
	sent      []sentBatch
}

type sentBatch struct {
	b      *batch
	settle func([]*jobpb.Result, error)
}

func newFakeLeader(there bool) *fakeLeader {
	return &fakeLeader{there: there, changed: make(chan struct{})}
}

func (f *fakeLeader) leader() (route, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.there {
		return route{}, f.changed
	}
	return route{forwards: f.elsewhere, send: func(b *batch, settle func([]*jobpb.Result, error)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent = append(f.sent, sentBatch{b, settle})
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
		b := newBatcher(f.leader, func(int, int, int) {})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { b.run(ctx); close(done) }()
		send := func(ops, size int) *reply {
			a := &reply{}
			b.submit(&request{ops: make([]byte, size), count: ops, expires: time.Now().Add(5 * time.Second), late: time.Now().Add(5 * time.Second),
				done: func(rs []*jobpb.Result, err error) { a.calls++; a.rs, a.err = rs, err }}, false)
			synctest.Wait()
			return a
		}
		body(t, f, send)
		cancel()
		for _, s := range f.sent {
			s.settle(nil, job.Unknown("stopped"))
		}
		<-done
	})
}

func TestLoneRequestLeavesAtOnce(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		a := send(2, 10)
		f.pop(t).settle(results(1, 2), nil)
		require.Equal(t, 1, a.calls)
		require.Len(t, a.rs, 2)
	})
}

func TestRequestsShareABatchWhileAnotherIsUnderWay(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(1, 10)
		x, y := send(1, 10), send(3, 10)
		require.Equal(t, 1, f.waiting(), "small batches wait for each other")
		f.pop(t).settle(results(0, 1), nil)
		synctest.Wait()
		shared := f.pop(t)
		require.Equal(t, 4, shared.b.count)
		shared.settle(results(7, 4), nil)
		require.Equal(t, uint64(7), x.rs[0].Seq)
		require.Equal(t, []uint64{8, 9, 10}, []uint64{y.rs[0].Seq, y.rs[1].Seq, y.rs[2].Seq})
	})
}

func TestLargeBatchesDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		for range maxInFlight + 2 {
			send(1, largeBatch)
		}
		require.Equal(t, maxInFlight, f.waiting(), "but there is a bound")
	})
}

func TestForwardedBatchesDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		f.elsewhere = true
		for range maxInFlight + 2 {
			send(1, 10)
		}
		require.Equal(t, maxInFlight, f.waiting(), "but there is a bound")
	})
}

func TestBatchStaysBelowItsSize(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(1, 1)
		send(1, largeBatch-1)
		send(1, maxBatchBytes-largeBatch+1)
		send(1, 1)
		send(1, 2*maxBatchBytes)
		var counts []int
		for f.waiting() > 0 {
			s := f.pop(t)
			counts = append(counts, s.b.count)
			s.settle(results(0, s.b.count), nil)
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
		f.pop(t).settle(results(1, 1), nil)
		require.NoError(t, late.err)
		require.Equal(t, 1, late.calls)
	})
}

func TestBatchThatNoLeaderTookGoesToTheNextInOrder(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		a := send(1, 10)
		f.pop(t).settle(nil, errRetry)
		require.Zero(t, a.calls)
		time.Sleep(2 * retryPause)
		synctest.Wait()
		f.pop(t).settle(results(3, 1), nil)
		require.Equal(t, uint64(3), a.rs[0].Seq)
	})
}

func TestUnknownOutcomeReachesEveryRequestOnce(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		a := send(1, 10)
		f.pop(t).settle(nil, job.Unknown("leadership lost"))
		require.Equal(t, 1, a.calls)
		require.Equal(t, job.CodeUnknown, job.CodeOf(a.err))
		short := send(2, 10)
		f.pop(t).settle(results(0, 1), nil)
		require.Equal(t, job.CodeUnknown, job.CodeOf(short.err), "fewer results than operations prove nothing")
	})
}

func TestWhenAddsAreRefusedTheirCompanyIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeLeader(true)
		b := newBatcher(f.leader, func(int, int, int) {})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { b.run(ctx); close(done) }()
		send := func(adds bool, count int) *reply {
			a := &reply{}
			b.submit(&request{ops: make([]byte, 10), count: count, adds: adds, expires: time.Now().Add(5 * time.Second), late: time.Now().Add(5 * time.Second),
				done: func(rs []*jobpb.Result, err error) { a.calls++; a.rs, a.err = rs, err }}, false)
			return a
		}
		add, finish, more := send(true, 1), send(false, 2), send(true, 1)
		synctest.Wait()
		f.pop(t).settle(nil, errDiskLow("full"))
		require.Equal(t, job.CodeDiskLow, job.CodeOf(add.err))
		require.Equal(t, job.CodeDiskLow, job.CodeOf(more.err))
		require.Zero(t, finish.calls)
		time.Sleep(2 * retryPause)
		synctest.Wait()
		again := f.pop(t)
		require.Equal(t, 2, again.b.count)
		again.settle(results(5, 2), nil)
		require.NoError(t, finish.err)
		require.Equal(t, uint64(5), finish.rs[0].Seq)
		cancel()
		<-done
	})
}

func TestPastTheBoundRequestsAreRefused(t *testing.T) {
	inBubble(t, false, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		for range maxQueuedBytes / maxEntryBytes {
			send(1, maxEntryBytes)
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
		require.Equal(t, job.CodeOverloaded, job.CodeOf(a.err), "many small ones are too much as well")
	})
}

// TestWhatHasWaitedTooLongIsRefused: under overload a request may come to the
// front when its client has given up.
func TestWhatHasWaitedTooLongIsRefused(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(1, 10)
		old := send(1, 10)
		time.Sleep(4 * time.Second)
		young := send(1, 10)
		time.Sleep(2 * time.Second)
		f.pop(t).settle(results(0, 1), nil)
		synctest.Wait()
		require.Equal(t, 1, old.calls)
		require.Equal(t, job.CodeOverloaded, job.CodeOf(old.err))
		left := f.pop(t)
		require.Equal(t, 1, left.b.count, "the young one leaves alone")
		left.settle(results(1, 1), nil)
		require.NoError(t, young.err)
	})
}

// The limits of package job are on the parts of a request; the entry's on the whole.
func TestWhatPassesTheLimitsFitsAnEntry(t *testing.T) {
	name := strings.Repeat("n", job.MaxNameBytes)
	delays := make([]int64, job.MaxBackoffDelays)
	for i := range delays {
		delays[i] = job.MaxDelay.Milliseconds()
	}
	extras := &jobpb.Extras{Backoff: &jobpb.Backoff{DelaysMs: delays}}
	for range job.MaxHeaders {
		extras.Headers = append(extras.Headers, &jobpb.Header{Name: "h", Value: strings.Repeat("v", job.MaxHeaderBytes/job.MaxHeaders)})
	}
	add := func(body int) *jobpb.Add {
		return &jobpb.Add{
			Id: name, Topic: name, DueMs: job.NeverMS, TtrMs: job.MaxTTR.Milliseconds(), MaxAttempts: 1 << 31, Extras: extras,
			Body: make([]byte, body), Condition: &jobpb.Condition{Revision: 1 << 31},
		}
	}
	all := &jobpb.Compose{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: name}}}
	for range job.MaxBatch {
		all.Adds = append(all.Adds, add(job.MaxComposeBytes/job.MaxBatch))
	}
	topics := make([]string, job.MaxReserveTopics)
	for i := range topics {
		topics[i] = name
	}
	for _, op := range []*jobpb.Op{
		{Kind: &jobpb.Op_Compose{Compose: all}},
		{Kind: &jobpb.Op_Add{Add: add(job.HardMaxBodyBytes)}},
		{Kind: &jobpb.Op_Reserve{Reserve: &jobpb.Reserve{Topics: topics}}},
	} {
		require.LessOrEqual(t, job.OpSize(op), maxEntryBytes, "%T", op.Kind)
	}

	// What the leader proposes in one piece.
	var back []*jobpb.Reserved
	for range job.MaxReserve {
		back = append(back, &jobpb.Reserved{Id: name, Seq: 1 << 63, Generation: 1 << 31, ReservedUntilMs: job.NeverMS})
	}
	var fires []*jobpb.Op
	for range dueSchedules {
		fire := &jobpb.FireSchedule{Name: name, Trouble: name, NextMs: job.NeverMS, ExpectNextMs: job.NeverMS, Missed: 1 << 63, LastMissedMs: job.NeverMS}
		for range dueRuns {
			fire.Runs = append(fire.Runs, &jobpb.ScheduledRun{PlannedMs: job.NeverMS, OffsetS: -1})
		}
		fires = append(fires, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: fire}})
	}
	for what, ops := range map[string][]*jobpb.Op{"jobs that go back": dispatch.GiveBack(back), "runs of schedules": fires} {
		size := 0
		for _, op := range ops {
			size += job.OpSize(op)
		}
		require.LessOrEqual(t, size, maxEntryBytes, what)
	}
	require.Less(t, maxEntryBytes, logstore.MaxEntryBytes)
}

func TestAnEntryPastTheLimitIsRefused(t *testing.T) {
	for _, force := range []bool{false, true} {
		b := newBatcher(newFakeLeader(true).leader, func(_, _, _ int) {})
		var got error
		b.submit(&request{ops: make([]byte, maxEntryBytes+1), count: 1, done: func(_ []*jobpb.Result, err error) { got = err }}, force)
		require.Equal(t, job.CodeTooLarge, job.CodeOf(got))
	}
}

func TestAMessagePastTheLimitOfAnEntryIsRefused(t *testing.T) {
	c := newTestCluster(t, 1)
	v := &service{shard: func(uint32) *Shard { return c.nodes[0].Shard }}
	op, err := job.AppendOp(nil, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Body: make([]byte, maxEntryBytes)}}})
	require.NoError(t, err)
	_, err = v.Propose(t.Context(), &noderpc.ProposeRequest{Count: 1, Ops: op})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "it may take 16777216 at most")
}
