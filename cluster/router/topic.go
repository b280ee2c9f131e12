package router

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// ofTopic does an operation on the jobs of a topic, which all shards have some of.
func (q *Queue) ofTopic(ctx context.Context, op *jobpb.Op) *jobpb.Result {
	switch k := op.Kind.(type) {
	case *jobpb.Op_PauseTopic:
		return q.pause(ctx, op, k.PauseTopic)
	case *jobpb.Op_Purge:
		return q.purge(ctx, op, k.Purge)
	case *jobpb.Op_KickTopic:
		return q.kickTopic(ctx, op, k.KickTopic)
	}
	return q.inTurn(ctx, op)
}

// bounded is an operation that changes some jobs of a topic, of which it bounds the number.
type bounded struct {
	op    *jobpb.Op
	max   *uint32
	sweep *jobpb.Sweep // nil: it is none
}

// boundedOf returns a copy of an operation.
func boundedOf(op *jobpb.Op) (b bounded) {
	b.op = proto.CloneOf(op)
	switch k := b.op.Kind.(type) {
	case *jobpb.Op_Purge:
		b.max, b.sweep = &k.Purge.Max, k.Purge.Sweep
	case *jobpb.Op_ReleaseTopic:
		b.max, b.sweep = &k.ReleaseTopic.Max, k.ReleaseTopic.Sweep
	case *jobpb.Op_KickTopic:
		b.max, b.sweep = &k.KickTopic.Max, k.KickTopic.Sweep
	case *jobpb.Op_MoveJobs:
		b.max = &k.MoveJobs.Max
	}
	return b
}

// inTurn does an operation in one shard after the other, until it has changed as many jobs as it
// may. Where a sweep continues is a place in the list of one shard, and the seq in it says of which. One that
// begins in a shard has no place yet: then the limit, which counts for nothing without one, is
// the number of the shard (beginAt).
func (q *Queue) inTurn(ctx context.Context, op *jobpb.Op) *jobpb.Result {
	b := boundedOf(op)
	if b.max == nil {
		return job.ErrorResult(job.Errorf(job.CodeInternal, "no rule says how shards do the operation %s together", oplog.KindOf(op)))
	}
	most, total := *b.max, uint32(0)
	shard, done := 0, b.sweep.GetFrom().GetDone()
	if from := b.sweep.GetFrom(); from != nil {
		if shard = q.sweptShard(from); shard >= len(q.shards) {
			return job.ErrorResult(job.Invalid("from", "is not a place that this sweep gave"))
		}
		if from.After == nil {
			from.Limit = 0
		}
	}
	for ; ; shard++ {
		*b.max = most - total
		r := q.one(ctx, shard, b.op)
		total += r.Count
		switch {
		case r.Code != jobpb.Code_OK:
			if total > 0 {
				r.Message = fmt.Sprintf("%s; before that %d jobs of other shards were done", r.Message, total)
			}
			return r
		case shard == len(q.shards)-1, r.More, r.GetDetails().GetNext() != nil:
			r.Count = total
			return r
		case total >= most && b.sweep != nil:
			return &jobpb.Result{Count: total, Details: &jobpb.Details{Next: beginAt(shard+1, done+uint64(total))}}
		case total >= most:
			return &jobpb.Result{Count: total, More: true}
		}
		if b.sweep != nil {
			b.sweep.From = &jobpb.Progress{Done: done + uint64(total)}
		}
	}
}

// beginAt is where a sweep continues with the first job of a shard. It has no start: clocks differ,
// so each shard gives the sweep a start of its own.
func beginAt(shard int, done uint64) *jobpb.Progress {
	return &jobpb.Progress{Limit: uint64(shard), Done: done}
}

func (q *Queue) sweptShard(p *jobpb.Progress) int {
	if p.GetAfter() != nil {
		return q.shardOfSeq(p.After.Seq)
	}
	return int(min(p.GetLimit(), uint64(len(q.shards))))
}

// one does an operation in one shard.
func (q *Queue) one(ctx context.Context, shard int, op *jobpb.Op) (r *jobpb.Result) {
	p := part{shard: shard, ops: []*jobpb.Op{op}, results: []**jobpb.Result{&r}}
	p.do(ctx, q.shards[shard])
	return r
}

// kickTopic kicks delayed jobs only if no shard has dead ones.
func (q *Queue) kickTopic(ctx context.Context, op *jobpb.Op, k *jobpb.KickTopic) *jobpb.Result {
	if !k.OrDelayed {
		return q.inTurn(ctx, op)
	}
	dead := proto.CloneOf(op)
	dead.GetKickTopic().OrDelayed = false
	if r := q.inTurn(ctx, dead); r.Code != jobpb.Code_OK || r.Count > 0 {
		return r
	}
	return q.inTurn(ctx, op)
}

// purge drops the topic, if it should, once no shard has a job of it: with its record a shard
// would lose the topic's pause.
func (q *Queue) purge(ctx context.Context, op *jobpb.Op, k *jobpb.Purge) *jobpb.Result {
	if !k.DropEmpty {
		return q.inTurn(ctx, op)
	}
	jobs := proto.CloneOf(op)
	jobs.GetPurge().DropEmpty = false
	r := q.inTurn(ctx, jobs)
	if r.Code != jobpb.Code_OK || r.GetDetails().GetNext() != nil {
		return r
	}
	t, err := q.Topic(ctx, k.Topic, false)
	if err != nil {
		return job.ErrorResult(job.Unknown("%d jobs were deleted; whether the topic has others is not known: %w", r.Count, err))
	}
	if t.Delayed+t.Ready+t.Reserved+t.Dead+t.Retained > 0 {
		return r
	}
	jobs = proto.CloneOf(op)
	jobs.GetPurge().Sweep.From = nil
	dropped := q.everywhere(ctx, jobs)
	dropped.Count += r.Count
	return dropped
}

// pause pauses the topic in all shards, also in those that have no job of it yet, or resumes it.
func (q *Queue) pause(ctx context.Context, op *jobpb.Op, k *jobpb.PauseTopic) *jobpb.Result {
	if k.Create {
		return q.everywhere(ctx, op)
	}
	results := q.inAll(ctx, op)
	there := func(r *jobpb.Result) bool { return r.Code != jobpb.Code_NOT_FOUND }
	if !slices.ContainsFunc(results, there) {
		return results[0]
	}
	create := proto.CloneOf(op)
	create.GetPauseTopic().Create = true
	resumes := k.PauseMs == 0 && k.UntilMs == 0 && !k.Endless
	for shard, r := range results {
		switch {
		case there(r):
		case resumes:
			results[shard] = &jobpb.Result{}
		default:
			results[shard] = q.one(ctx, shard, create)
		}
	}
	return together(results)
}

func (q *Queue) everywhere(ctx context.Context, op *jobpb.Op) *jobpb.Result {
	return together(q.inAll(ctx, op))
}

// inAll does an operation in all shards at the same time.
func (q *Queue) inAll(ctx context.Context, op *jobpb.Op) []*jobpb.Result {
	results := make([]*jobpb.Result, len(q.shards))
	q.each(func(shard int, _ Group) { results[shard] = q.one(ctx, shard, op) })
	return results
}

// together returns the result of an operation that all shards have done. If only some have, it
// names the others, and its outcome is unknown unless those refused it.
func together(results []*jobpb.Result) *jobpb.Result {
	all := &jobpb.Result{}
	var failed []string
	var why *jobpb.Result
	for shard, r := range results {
		all.Count += r.Count
		all.DueMs = max(all.DueMs, r.DueMs)
		if r.Code == jobpb.Code_OK {
			continue
		}
		failed = append(failed, fmt.Sprint(shard))
		if why == nil || r.Code == jobpb.Code_OUTCOME_UNKNOWN {
			why = r
		}
	}
	switch {
	case why == nil:
		return all
	case len(failed) == len(results):
		return why
	case why.Code >= jobpb.Code_NOT_APPLIED:
		return job.ErrorResult(job.Unknown("it was done in all shards but %s; repeat it: %s", strings.Join(failed, ", "), why.Message))
	}
	why = proto.CloneOf(why)
	why.Message = fmt.Sprintf("it was done in all shards but %s: %s", strings.Join(failed, ", "), why.Message)
	return why
}
