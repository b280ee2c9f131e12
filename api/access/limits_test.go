package access

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// limitedRig holds the token shop to limits, by a clock that a test sets.
type limitedRig struct {
	*Limits
	t      *testing.T
	source *changing
	now    time.Time
}

func newLimitedRig(t *testing.T, of *jobpb.TokenLimits) *limitedRig {
	r := &limitedRig{t: t, source: newChanging(enforced()), now: time.Unix(1_000_000, 0)}
	r.Limits = newLimits(r.source)
	r.clock = func() time.Time { return r.now }
	r.set("shop", of)
	return r
}

func (r *limitedRig) set(id string, of *jobpb.TokenLimits) {
	s := r.source.Auth()
	r.source.set(s.WithToken(s.Revision+1, auth.NewToken(&jobpb.Token{Id: id, Hash: secretFor(r.t, id).Hash(), Limits: of})))
}

// call begins a call of shop.
func (r *limitedRig) call(c *Connection, later bool) (*Request, error) {
	q := &Request{Principal: auth.TokenPrincipal("shop")}
	return q, r.Begin(q, c, later)
}

func (r *limitedRig) ctx(q *Request) context.Context { return NewContext(r.t.Context(), q) }

// passes requires that a call of n operations is allowed now.
func (r *limitedRig) passes(n int64) {
	r.t.Helper()
	require.NoError(r.t, r.Charge("shop", n, 0, false))
}

// waits requires that a call of n operations is refused for a time.
func (r *limitedRig) waits(n int64, d time.Duration) {
	r.t.Helper()
	err := r.Charge("shop", n, 0, false)
	require.Equal(r.t, job.CodeRateLimited, job.CodeOf(err))
	var e *job.Error
	require.ErrorAs(r.t, err, &e)
	require.InDelta(r.t, d.Seconds(), e.RetryAfter.Seconds(), 0.01)
}

func TestARateAllowsOneSecondsWorthAtOnce(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 10_000})
	for range 10 {
		r.passes(1)
	}
	r.waits(1, time.Second) // the least
	r.now = r.now.Add(100 * time.Millisecond)
	r.passes(1)
	r.waits(1, time.Second)
	r.now = r.now.Add(time.Hour)
	r.passes(10)
	r.waits(5, time.Second)
}

// What is larger than a second's worth could never be done otherwise.
func TestABatchAboveTheRateIsDoneAndPaidAfterwards(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 10_000})
	r.passes(100)
	r.waits(1, 9100*time.Millisecond)
	r.now = r.now.Add(9 * time.Second)
	r.waits(1, time.Second)
	r.now = r.now.Add(100 * time.Millisecond)
	r.passes(1)
	r.waits(100, time.Second)
	slow := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 100}) // one in 10 s
	slow.passes(1)
	slow.waits(1, 10*time.Second)
}

func TestAChangedLimitHoldsAtOnce(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000})
	r.passes(1000)
	r.waits(1, 1000*time.Second)
	r.set("shop", &jobpb.TokenLimits{RateMilli: 2000})
	r.passes(2)
	r.waits(1, time.Second)
	r.set("shop", nil)
	r.passes(1000)
	// What was opened while there was no limit counts when there is one.
	open := make([]Connection, 3)
	for i := range open {
		_, err := r.call(&open[i], false)
		require.NoError(t, err)
	}
	r.set("shop", &jobpb.TokenLimits{Connections: 3})
	_, err := r.call(&open[0], false)
	require.NoError(t, err)
	_, err = r.call(new(Connection), false)
	require.ErrorContains(t, err, "3 connections")
	open[1].Close()
	_, err = r.call(new(Connection), false)
	require.NoError(t, err)
}

// queueOf is a queue that does everything and counts what reaches it.
type queueOf struct {
	queue
	done  int
	taken uint32
	fused int
}

func (q *queueOf) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	q.done += len(ops)
	return make([]*jobpb.Result, len(ops)), nil
}

func (q *queueOf) Reserve(_ context.Context, r *jobpb.Reserve, _ time.Duration) ([]*jobpb.Reserved, error) {
	q.taken = r.Max
	return jobsOf(r.Max), nil
}

// jobsOf returns jobs with bodies of 100 bytes.
func jobsOf(n uint32) []*jobpb.Reserved {
	jobs := make([]*jobpb.Reserved, n)
	for i := range jobs {
		jobs[i] = &jobpb.Reserved{Body: make([]byte, 100)}
	}
	return jobs
}

func (q *queueOf) FinishAndReserve(_ context.Context, f []*jobpb.Finish, r *jobpb.Reserve, _ bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	q.fused++
	return make([]*jobpb.Result, len(f)), jobsOf(r.Max), nil
}

func (r *limitedRig) queue() (*Queue, *queueOf) {
	s := r.source.Auth()
	r.source.set(auth.NewState(s.Revision+1, true, &jobpb.AuthSettings{Mode: jobpb.AuthMode_AUTH_ENFORCE}, map[string]*auth.Token{
		"shop": auth.NewToken(&jobpb.Token{Id: "shop", Limits: s.Token("shop").Limits, Rules: []*jobpb.Rule{{Topics: []string{"*"}, Verbs: []jobpb.Verb{jobpb.Verb_VERB_ADD, jobpb.Verb_VERB_CONSUME}}}}),
	}))
	below := &queueOf{}
	c := New(r.source, nil, nil)
	c.Limits = r.Limits
	return c.Queue(below), below
}

func adds(n int) []*jobpb.Op {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "mail"}}}
	}
	return ops
}

func finishes(n int) []*jobpb.Op {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{}}}
	}
	return ops
}

// A batch costs what it has, and is refused before any of it is proposed. A call that was refused
// costs nothing.
func TestABatchCostsEachOfItsOperations(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 10_000})
	q, below := r.queue()
	one, err := r.call(nil, false)
	require.NoError(t, err)
	_, err = q.Do(r.ctx(one), adds(4))
	require.NoError(t, err)
	two, err := r.call(nil, false)
	require.NoError(t, err)
	_, err = q.Do(r.ctx(two), adds(7))
	require.Equal(t, job.CodeRateLimited, job.CodeOf(err))
	require.Equal(t, 4, below.done)
	r.passes(6)
	r.waits(1, time.Second)
	// A full budget allows a batch of any size.
	r.now = r.now.Add(time.Second)
	three, err := r.call(nil, false)
	require.NoError(t, err)
	_, err = q.Do(r.ctx(three), adds(100))
	require.NoError(t, err)
	r.waits(1, 9100*time.Millisecond)
}

func TestWhatEndsAReservationCountsButIsNotRefused(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000, Connections: 1})
	q, below := r.queue()
	first := new(Connection)
	_, err := r.call(first, false)
	require.NoError(t, err)
	r.waits(1, time.Second)
	ends, err := r.call(new(Connection), true) // the connection is one too many, too
	require.NoError(t, err)
	require.True(t, ends.Crowded())
	_, err = q.Do(r.ctx(ends), finishes(3))
	require.NoError(t, err)
	require.Equal(t, 3, below.done)
	r.waits(1, 4*time.Second)
	_, err = q.Do(r.ctx(ends), adds(1))
	require.ErrorContains(t, err, "connections")

	// With a reserve it finishes, and reserves nothing.
	results, jobs, err := q.FinishAndReserve(r.ctx(ends), []*jobpb.Finish{{}, {}}, &jobpb.Reserve{Topics: []string{"mail"}, Max: 1}, false)
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Empty(t, jobs)
	require.Zero(t, below.fused)

	// The node's own work is not the token's.
	before := below.done
	_, err = q.Do(auth.NewContext(r.ctx(ends), auth.System()), adds(1))
	require.NoError(t, err)
	require.Equal(t, before+1, below.done)
}

func TestAReserveTakesAsManyJobsAsTheRateAllows(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 10_000, Bytes: 1000})
	q, below := r.queue()
	call, err := r.call(nil, true)
	require.NoError(t, err)
	jobs, err := q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 100}, 0)
	require.NoError(t, err)
	require.Len(t, jobs, 10)
	_, err = q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 100}, 0)
	require.Equal(t, job.CodeRateLimited, job.CodeOf(err))
	require.EqualValues(t, 10, below.taken)
}

// A finish reserves the next job for the stream that held the one before, whoever finishes.
func TestAFinishReservesForAStreamByTheLimitsOfTheStream(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000})
	q, below := r.queue()
	next := func() *jobpb.Reserve { return &jobpb.Reserve{Topics: []string{"mail"}, Max: 1, Principal: "shop"} }
	_, jobs, err := q.FinishAndReserve(t.Context(), []*jobpb.Finish{{}}, next(), false)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	results, jobs, err := q.FinishAndReserve(t.Context(), []*jobpb.Finish{{}}, next(), false)
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Empty(t, jobs)
	require.Equal(t, 1, below.fused)
}

func TestBytesAreThoseOfRequestsAndOfJobs(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{Bytes: 1000})
	q, _ := r.queue()
	send := func(bytes int64) error {
		call, err := r.call(nil, false)
		require.NoError(t, err)
		return r.Received(call, bytes, false)
	}
	require.NoError(t, send(600))
	require.ErrorContains(t, send(600), "1000 bytes")
	require.NoError(t, send(400))
	r.now = r.now.Add(time.Second)
	require.NoError(t, send(5000), "larger than a second's worth")
	require.Error(t, send(1))
	r.now = r.now.Add(time.Minute)

	call, err := r.call(nil, true)
	require.NoError(t, err)
	require.NoError(t, r.Received(call, 5000, false), "nobody knows yet whether it finishes")
	_, err = q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 20}, 0)
	require.NoError(t, err)
	_, err = q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 1}, 0)
	require.Equal(t, job.CodeRateLimited, job.CodeOf(err), "the bodies of the jobs are to be paid first")
}

func TestConnectionsAndWaitersHavePlaces(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{Connections: 2, Waiters: 1})
	r.set("other", nil)
	one, two, three := new(Connection), new(Connection), new(Connection)
	require.NoError(t, r.Join(one, "shop"))
	require.NoError(t, r.Join(one, "shop"), "it has its place")
	require.NoError(t, r.Join(two, "shop"))
	require.ErrorContains(t, r.Join(three, "shop"), "2 connections")
	require.NoError(t, r.Join(two, "other"), "another token uses the connection now")
	require.NoError(t, r.Join(three, "shop"))
	three.Close()
	three.Close()
	require.NoError(t, r.Join(two, "shop"))
	require.EqualValues(t, 2, r.usageOf("shop").connections)
	require.NoError(t, r.Join(three, "shop"), "it is closed, and needs none")
	require.EqualValues(t, 2, r.usageOf("shop").connections)

	call, err := r.call(one, true)
	require.NoError(t, err)
	place, err := r.Wait(r.ctx(call))
	require.NoError(t, err)
	_, err = r.Wait(r.ctx(call))
	require.ErrorContains(t, err, "may have 1 stream or reserve that waits on each node")
	place.End()
	place, err = r.Wait(r.ctx(call))
	require.NoError(t, err)
	place.End()
	require.Equal(t, 1.0, testutil.ToFloat64(r.limited.WithLabelValues("connections")))
	require.Equal(t, 1.0, testutil.ToFloat64(r.limited.WithLabelValues("waiters")))
}

func TestLimitsAreCountedInTheModeThatReportsAndNotLookedAtWhileOff(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000, Connections: 1, Waiters: 1})
	set := func(mode jobpb.AuthMode) {
		s := r.source.Auth()
		r.source.set(auth.NewState(s.Revision+1, true, &jobpb.AuthSettings{Mode: mode}, map[string]*auth.Token{"shop": s.Token("shop")}))
	}
	counted := func() (n float64) {
		for _, limit := range []string{"rate", "connections", "waiters", "bytes"} {
			n += testutil.ToFloat64(r.limited.WithLabelValues(limit))
		}
		return n
	}
	uses := func() {
		for range 2 {
			call, err := r.call(new(Connection), false)
			require.NoError(t, err)
			_, err = r.Wait(r.ctx(call))
			require.NoError(t, err)
		}
	}
	set(jobpb.AuthMode_AUTH_OFF)
	uses()
	require.Zero(t, counted())
	set(jobpb.AuthMode_AUTH_REPORT)
	uses()
	require.Equal(t, 5.0, counted(), "each but the first operation")
	set(jobpb.AuthMode_AUTH_ENFORCE)
	_, err := r.call(new(Connection), false)
	require.ErrorContains(t, err, "connections", "those before are counted")
}

// What a node keeps of a token goes with the token, whatever is under way.
func TestUsageGoesWithTheToken(t *testing.T) {
	source := newChanging(enforced())
	c := Open(Options{Source: source})
	t.Cleanup(c.Close)
	many := enforced()
	for i := range 50 {
		many = withToken(t, many, "t"+strconv.Itoa(i), "mail", "add")
	}
	source.set(many)
	for i := range 50 {
		require.NoError(t, c.Join(new(Connection), "t"+strconv.Itoa(i)))
	}
	require.Nil(t, c.usageOf("nobody"))
	size := func() int {
		c.Limits.mu.RLock()
		defer c.Limits.mu.RUnlock()
		return len(c.of)
	}
	require.Equal(t, 50, size())
	source.set(withToken(t, enforced(), "t7", "mail", "add"))
	require.Eventually(t, func() bool { return size() == 1 }, time.Minute, time.Millisecond)
	require.Nil(t, c.usageOf("t8"))
}

func TestACallOfATokenNeedsNoMemoryForItsLimits(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: job.MaxRateMilli, Connections: 1, Waiters: 1, Bytes: job.MaxTokenBytes})
	c, q := new(Connection), &Request{Principal: auth.TokenPrincipal("shop")}
	ctx, ops, ends := r.ctx(q), adds(1), finishes(1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		*q = Request{Principal: q.Principal}
		if r.Begin(q, c, false) != nil || r.Received(q, 100, false) != nil || r.chargeOps(ctx, ops) != nil {
			panic("refused")
		}
		place, err := r.Wait(ctx)
		if err != nil {
			panic(err)
		}
		place.End()
		if r.Charge("shop", 1, 1, false) != nil {
			panic("refused")
		}
		*q = Request{Principal: q.Principal}
		if r.Begin(q, c, true) != nil || r.Received(q, 100, false) != nil || r.chargeOps(ctx, ends) != nil {
			panic("refused")
		}
		r.End(q)
	}))
}
