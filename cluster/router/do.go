package router

import (
	"context"
	"sync"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
	"tarry/job/slot"
)

// configGroup stands for the config group where a shard is named otherwise.
const configGroup = -1

// Do implements api.Queue. Each group gets its operations in their order, and all of them at the same
// time. If operations go to several groups, one that fails is the outcome of its own operations only.
func (q *Queue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	results := make([]*jobpb.Result, len(ops))
	for from := 0; from < len(ops); {
		if oplog.RouteOf(ops[from]) == oplog.RouteTopic {
			results[from] = q.ofTopic(ctx, ops[from])
			from++
			continue
		}
		to := from + 1
		for to < len(ops) && oplog.RouteOf(ops[to]) != oplog.RouteTopic {
			to++
		}
		parts := q.cut(ops[from:to], results[from:to])
		if only := parts[0]; len(only.ops) == len(ops) {
			return q.group(only.shard).Do(ctx, ops)
		}
		var calls sync.WaitGroup
		for _, p := range parts {
			calls.Go(func() { p.do(ctx, q.group(p.shard)) })
		}
		calls.Wait()
		from = to
	}
	return results, nil
}

func (q *Queue) group(shard int) Group {
	if shard == configGroup {
		return q.config
	}
	return q.shards[shard]
}

// part is what one group gets of a batch.
type part struct {
	shard   int
	ops     []*jobpb.Op
	results []**jobpb.Result // where those of ops go
}

// cut returns the parts of a batch, at least one. What is refused has its result and is in none.
func (q *Queue) cut(ops []*jobpb.Op, results []*jobpb.Result) []*part {
	var parts []*part
	of := make(map[int]*part, 1)
	home := -1 // of the adds without an id
	for i, op := range ops {
		shard, err := q.route(op, &home)
		if err != nil {
			results[i] = job.ErrorResult(err)
			continue
		}
		p := of[shard]
		if p == nil {
			p = &part{shard: shard}
			of[shard] = p
			parts = append(parts, p)
		}
		p.ops, p.results = append(p.ops, op), append(p.results, &results[i])
	}
	if len(parts) == 0 {
		return []*part{{}}
	}
	return parts
}

// do applies the part. Its error is that of each operation.
func (p *part) do(ctx context.Context, g Group) {
	if len(p.ops) == 0 {
		return
	}
	results, err := g.Do(ctx, p.ops)
	if err == nil && len(results) != len(p.ops) {
		err = job.Errorf(job.CodeInternal, "%d operations gave %d results", len(p.ops), len(results))
	}
	for i, to := range p.results {
		if err != nil {
			*to = job.ErrorResult(inShard(p.shard, err))
			continue
		}
		*to = results[i]
	}
}

// route returns the shard of an operation that one group gets. *home is the shard of jobs without
// an id; the first of a batch chooses it if it is negative.
func (q *Queue) route(op *jobpb.Op, home *int) (shard int, err error) {
	switch oplog.RouteOf(op) {
	case oplog.RouteConfig:
		return configGroup, nil
	case oplog.RouteJob:
		return q.shardOfRef(oplog.RefOf(op)), nil
	case oplog.RouteSchedule:
		return q.shardOfSlot(slot.OfSchedule(oplog.NameOf(op))), nil
	case oplog.RouteAdds:
		if shard, anywhere, err := q.routeAdds(op); err != nil || !anywhere {
			return shard, err
		}
		if *home < 0 {
			*home = q.inOrder()[0]
		}
		return *home, nil
	}
	return 0, job.Errorf(job.CodeInternal, "no caller sends the operation %s", oplog.KindOf(op))
}

// routeAdds returns the shard of the jobs that an operation brings; anywhere: any will do. All of
// their ids, and that of the job that it finishes, have one slot. That one shard has several slots
// does not count: it may not have them any more once the cluster has more shards.
func (q *Queue) routeAdds(op *jobpb.Op) (shard int, anywhere bool, err error) {
	const none = slot.Count
	ref, finishes := oplog.EndOf(op)
	found, one := uint32(none), true
	take := func(id string) {
		s := slot.Of(id)
		one = one && (found == none || found == s)
		found = s
	}
	for _, add := range oplog.AddsOf(op) {
		if add.GetId() != "" {
			take(add.Id)
		}
	}
	if id := ref.GetId(); finishes && found != none {
		if _, _, made := job.ParseServerID(id); made || id == "" {
			one = false // it has no slot
		} else {
			take(id)
		}
	}
	switch {
	case !one:
		return 0, false, job.Errorf(job.CodeCrossSlot, "the ids are in several slots, and jobs are changed together only in one; give all of them one tag, such as {order-5}")
	case finishes:
		return q.shardOfRef(ref), false, nil
	case found == none:
		return 0, true, nil
	}
	return q.shardOfSlot(found), false, nil
}
