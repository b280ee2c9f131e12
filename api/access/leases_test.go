package access

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// leasing is a queue with one reservation after the other, each of its own job.
type leasing struct {
	queue
	seq   uint64
	ended map[uint64]bool
}

const leaseTTR = 40 * time.Second

func (q *leasing) Reserve(_ context.Context, r *jobpb.Reserve, _ time.Duration) (jobs []*jobpb.Reserved, err error) {
	for range r.Max {
		q.seq++
		jobs = append(jobs, &jobpb.Reserved{Seq: q.seq, Generation: 1, TtrMs: leaseTTR.Milliseconds()})
	}
	return jobs, nil
}

func (q *leasing) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, _ *jobpb.Reserve, _ bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	results, err := q.Do(ctx, opsOf(finishes))
	return results, nil, err
}

func opsOf(finishes []*jobpb.Finish) (ops []*jobpb.Op) {
	for _, f := range finishes {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}})
	}
	return ops
}

func (q *leasing) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for i, op := range ops {
		ref := op.GetTouch().GetRef()
		if end, ends := oplog.EndOf(op); ends {
			ref = end
		}
		results[i] = &jobpb.Result{}
		if ref.GetSeq() == 0 || ref.Seq > q.seq || ref.Generation != 1 || q.ended[ref.Seq] {
			results[i].Code = jobpb.Code_STALE_TOKEN
		} else if op.GetTouch() == nil {
			q.ended[ref.Seq] = true
		}
	}
	return results, nil
}

func (r *limitedRig) leasing() *Queue {
	q, _ := r.queue()
	q.queue = &leasing{ended: map[uint64]bool{}}
	return q
}

// hold reserves a job, and uses up what touches have besides.
func (r *limitedRig) hold(q *Queue) {
	r.t.Helper()
	call, err := r.call(nil, true)
	require.NoError(r.t, err)
	_, err = q.Reserve(r.ctx(call), &jobpb.Reserve{Topics: []string{"mail"}, Max: 1}, 0)
	require.NoError(r.t, err)
}

func (r *limitedRig) drain(q *Queue) {
	r.t.Helper()
	for r.does(q, 0, touches(1)) == nil {
	}
}

func touchOf(seq uint64, ttr time.Duration) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: &jobpb.Ref{Seq: seq, Generation: 1}, TtrMs: ttr.Milliseconds()}}}
}

func finishOf(seq uint64) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: seq, Generation: 1}}}}
}

// A consumer does not lose its job because it, or another one with its token, was busy.
func TestAReservationCanBeProlongedHoweverBusyItsTokenIs(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1, Bytes: 1})
	q := r.leasing()
	r.hold(q)
	r.drain(q)
	for range 20 {
		require.NoError(t, r.does(q, 200, []*jobpb.Op{touchOf(1, 0)}))
		require.Equal(t, job.CodeRateLimited, job.CodeOf(r.does(q, 0, []*jobpb.Op{touchOf(1, 0)})), "one in a quarter of its TTR")
		r.now = r.now.Add(leaseTTR / 4)
		r.drain(q)
	}
	require.NoError(t, r.does(q, 0, []*jobpb.Op{touchOf(1, 2*time.Hour)}))
	r.now = r.now.Add(time.Hour)
	r.drain(q)
	require.NoError(t, r.does(q, 0, []*jobpb.Op{touchOf(1, 0)}), "it lasts as long as the touch has said")
}

// Only real reservations that last count, each once.
func TestTouchesOfWhatIsNotHeldAreNoWayToCallWithoutEnd(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000})
	q := r.leasing()
	for range 5 { // released and reserved again, finished, expired: whatever became of them
		r.now = r.now.Add(time.Second)
		r.hold(q)
	}
	r.drain(q)
	require.Error(t, r.does(q, 0, []*jobpb.Op{touchOf(1, 0), touchOf(1, 0)}), "one reservation covers one touch")
	require.Error(t, r.does(q, 0, []*jobpb.Op{touchOf(6, 0)}), "another one's")
	require.NoError(t, r.does(q, 0, []*jobpb.Op{finishOf(1)}))
	require.Error(t, r.does(q, 0, []*jobpb.Op{touchOf(1, 0)}), "finished here")
	q.queue.(*leasing).ended[2] = true
	require.NoError(t, r.does(q, 0, []*jobpb.Op{touchOf(2, 0)}), "nobody knows yet")
	r.now = r.now.Add(leaseTTR / 4)
	r.drain(q)
	require.Error(t, r.does(q, 0, []*jobpb.Op{touchOf(2, 0)}), "finished elsewhere")
	require.NoError(t, r.does(q, 0, []*jobpb.Op{touchOf(3, 0), touchOf(4, 0)}))
	r.now = r.now.Add(leaseTTR)
	r.drain(q)
	require.Error(t, r.does(q, 0, []*jobpb.Op{touchOf(5, 0)}), "expired")
}

// Whoever else has the token cannot keep a consumer from ending what it holds.
func TestCallsAboutOtherJobsUseUpNothingOfWhatIsHeld(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000})
	q := r.leasing()
	for range 4 {
		r.now = r.now.Add(time.Second)
		r.hold(q)
	}
	for passed(100, func() error { return r.does(q, 0, []*jobpb.Op{finishOf(77)}) }) > 0 {
	}
	require.Error(t, r.does(q, 0, []*jobpb.Op{finishOf(1), finishOf(1)}), "each counts once")
	require.NoError(t, r.does(q, 0, []*jobpb.Op{finishOf(1)}))
	require.Error(t, r.does(q, 0, []*jobpb.Op{finishOf(1)}), "and has ended")
	call, err := r.call(nil, true)
	require.NoError(t, err)
	_, _, err = q.FinishAndReserve(r.ctx(call), []*jobpb.Finish{finishOf(2).GetFinish()}, &jobpb.Reserve{Topics: []string{"mail"}, Max: 1}, false)
	require.NoError(t, err)
	release := &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: &jobpb.Ref{Seq: 3, Generation: 1}}}}
	bury := &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: &jobpb.Ref{Seq: 4, Generation: 1}}}}
	require.NoError(t, r.does(q, 0, []*jobpb.Op{release, bury}))
}

// An end that is refused by the state machine for another reason is not free again and again.
func TestAnEndOfAReservationIsCoveredOnce(t *testing.T) {
	r := newLimitedRig(t, &jobpb.TokenLimits{RateMilli: 1000})
	q := r.leasing()
	r.hold(q)
	q.queue = &forbidding{}
	r.drain(q)
	require.Equal(t, 1, passed(100, func() error { return r.does(q, 0, []*jobpb.Op{finishOf(1)}) }))
}

// forbidding forbids everything.
type forbidding struct{ queue }

func (forbidding) Do(_ context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for i := range results {
		results[i] = &jobpb.Result{Code: jobpb.Code_FORBIDDEN}
	}
	return results, nil
}

func TestLeasesHaveABound(t *testing.T) {
	var l leases
	at := time.Unix(1_000_000, 0)
	for i := range uint64(2 * maxLeases) {
		l.add([]*jobpb.Reserved{{Seq: i, Generation: 1, TtrMs: 10_000}}, at)
	}
	require.Equal(t, maxLeases, len(l.of))
	at = at.Add(10 * time.Second)
	for i := range uint64(2 * maxLeases) {
		l.add([]*jobpb.Reserved{{Seq: i, Generation: 2, TtrMs: 10_000}}, at)
	}
	require.Equal(t, maxLeases, len(l.of))
	require.NotNil(t, l.of[reservation{1, 2}], "those that have expired make room")
}
