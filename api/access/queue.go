package access

import (
	"context"
	"time"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// queue is what Queue wraps: the queue of the API.
type queue interface {
	Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error)
	Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error)
	FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error)
	DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error)
	job.Reader
}

// Queue does operations and reads for the caller of a context, as far as it may.
type Queue struct {
	queue
	checks *Checks
}

// Queue returns q with the checks.
func (c *Checks) Queue(q queue) *Queue { return &Queue{queue: q, checks: c} }

// Do implements the queue of the API. An operation that is alone and that the caller certainly
// may not do ends the call before it is sent.
func (q *Queue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	if len(ops) == 1 { // of several, each has a result of its own, which the state machine gives
		if err := q.checkOp(ctx, ops[0]); err != nil {
			return nil, err
		}
	}
	if err := q.checks.chargeOps(ctx, ops); err != nil {
		return nil, err
	}
	results, err := q.queue.Do(ctx, ops)
	q.checks.done(ctx, ops, results)
	q.countDenied(ctx, results)
	return results, err
}

// countDenied counts and records what the state machine has denied, or has let through in the
// mode that reports.
func (q *Queue) countDenied(ctx context.Context, results []*jobpb.Result) {
	var denied denials
	for _, r := range results {
		if d := r.GetDetails().GetDenied(); d != nil {
			denied.add(denial{auth.Denial(d.Reason), auth.Verbs(d.Verbs), r.Code == jobpb.Code_OK}, d.Topic)
		}
	}
	q.checks.count(ctx, denied)
}

// Reserve implements the queue of the API. It lowers r.Max to what the limits of the token allow.
func (q *Queue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	if err := q.checks.AllowOn(ctx, auth.Consume, r.Topics); err != nil {
		return nil, err
	}
	pay := q.checks.payerOf(ctx, r)
	if err := pay.reserve(r); err != nil {
		return nil, err
	}
	jobs, err := q.queue.Reserve(ctx, r, wait)
	pay.got(jobs)
	return jobs, err
}

// FinishAndReserve implements the queue of the API.
func (q *Queue) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	if r.Principal == "" { // else it is for somebody else, who was checked
		if err := q.checks.AllowOn(ctx, auth.Consume, r.Topics); err != nil {
			return nil, nil, err
		}
	}
	if err := q.checks.chargeFinishes(ctx, finishes); err != nil {
		return nil, nil, err
	}
	pay := q.checks.payerOf(ctx, r)
	if pay.reserve(r) != nil { // it finishes, but gets nothing more
		ops := make([]*jobpb.Op, len(finishes))
		for i, f := range finishes {
			ops[i] = &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}}
		}
		results, err := q.queue.Do(ctx, ops)
		q.checks.done(ctx, ops, results)
		q.countDenied(ctx, results)
		return results, nil, err
	}
	results, jobs, err := q.queue.FinishAndReserve(ctx, finishes, r, waits)
	q.checks.finished(ctx, finishes, results)
	q.countDenied(ctx, results)
	pay.got(jobs)
	return results, jobs, err
}

// DeleteAndReserve implements the queue of the API.
func (q *Queue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	result, jobs, err := q.queue.DeleteAndReserve(ctx, d, r)
	if err == nil {
		q.countDenied(ctx, []*jobpb.Result{result})
	}
	return result, jobs, err
}
