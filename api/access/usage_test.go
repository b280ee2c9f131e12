package access

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// does makes a call of shop that is counted later, with a body, and returns what becomes of it.
func (r *limitedRig) does(q *Queue, body int64, ops []*jobpb.Op) error {
	r.t.Helper()
	call, err := r.call(nil, true)
	if err == nil && body > 0 {
		err = r.Received(call, body, false)
	}
	if err == nil && len(ops) > 0 {
		_, err = q.Do(r.ctx(call), ops)
	}
	r.End(call)
	return err
}

func touches(n int) []*jobpb.Op {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{}}}
	}
	return ops
}

// passed counts the calls that are allowed of many at once.
func passed(calls int, call func() error) (n int) {
	for range calls {
		if call() == nil {
			n++
		}
	}
	return n
}

func TestCallsThatEndNothingHaveABound(t *testing.T) {
	for name, ops := range map[string][]*jobpb.Op{"finish": finishes(1), "touch": touches(1)} {
		r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 5000})
		q, below := r.queue()
		require.Equal(t, 5+minKeeps, passed(200, func() error { return r.does(q, 0, ops) }), name)
		require.Equal(t, 5+minKeeps, below.done, name)
		err := r.does(q, 0, ops)
		require.Equal(t, job.CodeRateLimited, job.CodeOf(err), name)
		// It fills as the rate does.
		r.now = r.now.Add(2 * time.Second)
		require.Equal(t, 10, passed(200, func() error { return r.does(q, 0, ops) }), name)
	}
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 5000})
	q, _ := r.queue()
	require.Equal(t, 2, passed(5, func() error { return r.does(q, 0, finishes(1000)) }))
	call, err := r.call(nil, true)
	require.Error(t, err)
	_, _, err = q.FinishAndReserve(r.ctx(call), []*jobpb.Finish{{}}, &jobpb.Reserve{Topics: []string{"mail"}, Max: 1}, false)
	require.Equal(t, job.CodeRateLimited, job.CodeOf(err))
	fast := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 100_000})
	q, _ = fast.queue()
	require.Equal(t, 100+1000, passed(2000, func() error { return fast.does(q, 0, touches(1)) }), "ten seconds' worth")
}

// A consumer reserves what the rate allows, for a long time, and ends it all at once.
func TestAllJobsThatWereReservedHereCanBeEnded(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 5000, Bytes: 1})
	q := r.leasing()
	for range 200 {
		r.now = r.now.Add(100 * time.Second)
		call, err := r.call(nil, true)
		require.NoError(t, err)
		jobs, err := q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 5}, 0)
		require.NoError(t, err)
		require.Len(t, jobs, 5)
		r.End(call)
	}
	require.Equal(t, minKeeps, passed(500, func() error { return r.does(q, 0, touches(1)) }), "other touches do not use them up")
	held := make([]*jobpb.Op, 500)
	for i := range held {
		held[i] = finishOf(uint64(501 + i))
	}
	require.NoError(t, r.does(q, 30_000, held))
	n := uint64(500)
	require.Equal(t, 500, passed(501, func() error { n--; return r.does(q, 100, []*jobpb.Op{finishOf(n + 1)}) }))
}

func TestTheJobsOfAFinishAreRefusedAsOtherAddsAre(t *testing.T) {
	then := func(n int) []*jobpb.Op {
		a := &jobpb.AtomicAdd{Finish: &jobpb.Finish{}}
		for range n {
			a.Adds = append(a.Adds, &jobpb.Add{Topic: "mail"})
		}
		return []*jobpb.Op{{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: a}}}
	}
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 5000, Bytes: 100_000})
	q, below := r.queue()
	require.Equal(t, 1, passed(8, func() error { return r.does(q, 300_000, then(10)) }))
	require.Equal(t, 1, below.done)
	require.NoError(t, r.does(q, 100, then(0)), "it adds nothing")
	require.NoError(t, r.does(q, 100, finishes(1)))
	r.now = r.now.Add(3 * time.Second) // enough for its operations, and not for its bytes
	require.ErrorContains(t, r.does(q, 150_000, then(1)), "100000 bytes")
	r.now = r.now.Add(time.Hour)
	require.NoError(t, r.does(q, 100, then(4)))
	require.ErrorContains(t, r.does(q, 100, then(1)), "5 operations")
	r.now = r.now.Add(time.Second)
	r.passes(4)
	require.NoError(t, r.does(q, 100, then(1)), "the finish is not refused with it")
}

func TestAMalformedCallCounts(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 2000, Bytes: 1000})
	q, _ := r.queue()
	require.Equal(t, 2, passed(60, func() error { return r.does(q, 200_000, nil) }))
	require.Error(t, r.Charge("shop", 1, 0, false), "an add")
	r = newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 2000})
	q, _ = r.queue()
	require.Equal(t, 2+minKeeps, passed(200, func() error { return r.does(q, 0, nil) }))
}

// What is refused costs nothing, unless it was large and is read already.
func TestALargeCallThatIsReadAndRefusedCountsItsBytes(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1, Bytes: 1000})
	q, _ := r.queue()
	r.passes(1)
	reserves := func(body int64) (read bool) {
		call, err := r.call(nil, true)
		require.NoError(t, err)
		if r.Received(call, body, false) != nil {
			return false
		}
		_, err = q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 1}, 0)
		require.Equal(t, job.CodeRateLimited, job.CodeOf(err))
		r.End(call)
		return true
	}
	for range 1000 {
		require.True(t, reserves(100))
	}
	n := 0
	for range 10 {
		if reserves(500_000) {
			n++
		}
	}
	require.Equal(t, 1, n)
}

// It is read if anything at all is allowed, and is paid afterwards.
func TestABodyOfUnknownLengthCountsOnceItIsRead(t *testing.T) {
	for later, want := range map[bool]int{false: 1, true: 2} {
		r := newLimitedRig(t, &jobpb.TokenLimits{Bytes: 1000})
		n := passed(10, func() error {
			call, err := r.call(nil, later)
			require.NoError(t, err)
			if err = r.Received(call, 1, false); err == nil {
				require.NoError(t, r.Received(call, 300_000, true))
			}
			r.End(call)
			return err
		})
		require.Equal(t, want, n)
	}
}

// Twice the limit is the most, and what is more than the limit does nothing but end reservations.
func TestConnectionsThatAreTooManyHaveABound(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{Connections: 3})
	q, _ := r.queue()
	open, crowded := make([]Connection, 40), 0
	for i := range open {
		call, err := r.call(&open[i], true)
		if i >= 6 {
			require.ErrorContains(t, err, "3 connections")
			require.True(t, call.Crowded())
			continue
		}
		require.NoError(t, err)
		if call.Crowded() {
			crowded++
			_, err = q.Do(r.ctx(call), adds(1))
			require.ErrorContains(t, err, "3 connections")
			_, err = q.Do(r.ctx(call), finishes(1))
			require.NoError(t, err)
		}
	}
	require.Equal(t, 3, crowded)
	_, err := r.call(new(Connection), false)
	require.Error(t, err)
	open[5].Close()
	call, err := r.call(&open[7], true)
	require.NoError(t, err)
	require.True(t, call.Crowded())
	for i := range open {
		open[i].Close()
	}
	require.Zero(t, r.usageOf("shop").crowded)
	require.Zero(t, r.usageOf("shop").connections)
}
