package router

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Reserve implements api.Queue.
func (q *Queue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	jobs, err := q.reserveNow(ctx, r, q.inOrder())
	if len(jobs) > 0 || wait <= 0 || err != nil && !passes(err) {
		return jobs, err
	}
	return q.await(ctx, r, wait)
}

// passes reports whether a shard that failed with err is expected back soon.
func passes(err error) bool {
	code := job.CodeOf(err)
	return code == job.CodeNotApplied || code == job.CodeUnknown || code == job.CodeOverloaded
}

// reserveNow reserves what is ready, in one shard after the other. It returns no error with jobs.
// Without jobs and error no shard had any.
func (q *Queue) reserveNow(ctx context.Context, r *jobpb.Reserve, order []int) (jobs []*jobpb.Reserved, err error) {
	left := proto.CloneOf(r)
	for _, shard := range order {
		got, failed := q.shards[shard].Reserve(ctx, left, 0)
		if failed != nil && err == nil {
			err = inShard(shard, failed)
		}
		jobs = append(jobs, got...)
		if uint32(len(got)) >= left.Max {
			break
		}
		left.Max -= uint32(len(got))
		if r.MaxBytes > 0 {
			// A shard may exceed the bytes by one job, so the next needs room for one.
			if left.MaxBytes -= bodies(got); len(jobs) > 0 && left.MaxBytes < int64(job.Newest().HardMaxBodyBytes) {
				break
			}
		}
	}
	if len(jobs) > 0 {
		return jobs, nil
	}
	return nil, err
}

func bodies(jobs []*jobpb.Reserved) (n int64) {
	for _, j := range jobs {
		n += int64(len(j.Body))
	}
	return n
}

// await waits in all shards at the same time. The first that has jobs ends the waits in the others, and what they
// reserved meanwhile is given back unless r has room for it.
//
// INTERIM: until waiters are lent to one shard at a time, a wait costs a call to each shard, and each
// job too much costs two entries of a log.
func (q *Queue) await(ctx context.Context, r *jobpb.Reserve, wait time.Duration) (jobs []*jobpb.Reserved, err error) {
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	type outcome struct {
		jobs []*jobpb.Reserved
		err  error
	}
	outcomes := make(chan outcome, len(q.shards))
	for shard, g := range q.shards {
		go func() {
			got, err := g.Reserve(waiting, proto.CloneOf(r), wait)
			if err != nil {
				err = inShard(shard, err)
			}
			outcomes <- outcome{got, err}
		}()
	}
	var surplus []*jobpb.Reserved
	for range q.shards {
		o := <-outcomes
		if err == nil {
			err = o.err
		}
		for _, j := range o.jobs {
			enough()
			over := uint32(len(jobs)) >= r.Max || r.MaxBytes > 0 && len(jobs) > 0 && bodies(jobs)+int64(len(j.Body)) > r.MaxBytes
			if over {
				surplus = append(surplus, j)
			} else {
				jobs = append(jobs, j)
			}
		}
	}
	q.giveBack(ctx, surplus)
	if len(jobs) > 0 {
		return jobs, nil
	}
	return nil, err
}

// giveBack releases jobs that no consumer received. If it fails, their reservations expire.
func (q *Queue) giveBack(ctx context.Context, jobs []*jobpb.Reserved) {
	if len(jobs) == 0 {
		return
	}
	ops := make([]*jobpb.Op, len(jobs))
	for i, j := range jobs {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Release{Release: oplog.GiveBack(j, 0)}}
	}
	ctx = auth.NewContext(context.WithoutCancel(ctx), auth.System())
	_, _ = q.Do(ctx, ops)
}

// maxStays is how many calls in a row may finish and reserve in one shard while others may have
// jobs: one entry of its log does both, which is why they stay.
const maxStays = 8

// FinishAndReserve implements api.Queue. If one shard has all of the jobs that are finished, its next
// entry does everything. It looks for jobs elsewhere if that has none, and from time to time.
func (q *Queue) FinishAndReserve(ctx context.Context, finishes []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	ops := make([]*jobpb.Op, len(finishes))
	for i, f := range finishes {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: f}}
	}
	return q.endAndReserve(ctx, ops, r, func(ctx context.Context, g Group) ([]*jobpb.Result, []*jobpb.Reserved, error) {
		return g.FinishAndReserve(ctx, finishes, r, waits)
	})
}

// DeleteAndReserve implements api.Queue.
func (q *Queue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	op := &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: d}}
	results, jobs, err := q.endAndReserve(ctx, []*jobpb.Op{op}, r, func(ctx context.Context, g Group) ([]*jobpb.Result, []*jobpb.Reserved, error) {
		result, jobs, err := g.DeleteAndReserve(ctx, d, r)
		return []*jobpb.Result{result}, jobs, err
	})
	if err != nil {
		return nil, nil, err
	}
	return results[0], jobs, nil
}

// endAndReserve does the operations that end jobs, and reserves. together does both in one shard.
// Once the operations are done it succeeds, so that their results are never lost: if the reserve
// fails then, it has found nothing.
func (q *Queue) endAndReserve(
	ctx context.Context, ops []*jobpb.Op, r *jobpb.Reserve, together func(context.Context, Group) ([]*jobpb.Result, []*jobpb.Reserved, error),
) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	if len(ops) == 0 {
		jobs, err := q.reserveNow(ctx, r, q.inOrder())
		return nil, jobs, err
	}
	// It goes on if the caller hangs up, so that the caller gets the jobs and can release them.
	ctx = context.WithoutCancel(ctx)
	home := q.shardOfRef(oplog.RefOf(ops[0]))
	one := !slices.ContainsFunc(ops, func(op *jobpb.Op) bool { return q.shardOfRef(oplog.RefOf(op)) != home })
	order := slices.DeleteFunc(q.inOrder(), func(shard int) bool { return shard == home })
	var results []*jobpb.Result
	var jobs []*jobpb.Reserved
	var err error
	if one && q.stays[home].Add(1) <= maxStays {
		results, jobs, err = together(ctx, q.shards[home])
	} else {
		q.stays[home].Store(0)
		results, err = q.Do(ctx, ops)
		order = append(order, home)
	}
	if err != nil || len(jobs) > 0 {
		return results, jobs, err
	}
	jobs, _ = q.reserveNow(ctx, r, order)
	return results, jobs, nil
}
