package router

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/slot"
)

// Read implements job.Reader. What one group knows is asked of that group. What all shards have a
// part of is asked of all at the same time: each reply is as new as a reply of one group is, and
// so no read goes back, but they are of no common instant. Without the reply of one shard there is none:
// a part of a list or of a sum would look like the whole.
func (q *Queue) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	switch what := r.What.(type) {
	case *jobpb.Read_Job:
		return q.ask(ctx, q.shardOf(what.Job), r, stale)
	case *jobpb.Read_JobSeq:
		return q.ask(ctx, q.shardOfSeq(what.JobSeq), r, stale)
	case *jobpb.Read_Explain:
		return q.ask(ctx, q.shardOf(what.Explain.GetId()), r, stale)
	case *jobpb.Read_Schedule:
		return q.ask(ctx, q.shardOfSlot(slot.OfSchedule(what.Schedule)), r, stale)
	case *jobpb.Read_Token, *jobpb.Read_Tokens, *jobpb.Read_Auth, *jobpb.Read_Admission, *jobpb.Read_Config:
		return q.config.Read(ctx, r, stale)
	case *jobpb.Read_Namespace, *jobpb.Read_Namespaces:
		return q.namespaces(ctx, r, stale)
	case *jobpb.Read_JobsById:
		return q.jobsByID(ctx, what.JobsById, stale)
	case *jobpb.Read_Jobs:
		return q.jobs(ctx, what.Jobs, stale)
	}
	all, err := q.askAll(ctx, widened(r), stale)
	if err != nil {
		return nil, err
	}
	return merge(r, all)
}

// merge returns the reply of all shards, whose replies are all.
func merge(r *jobpb.Read, all []*jobpb.ReadResult) (*jobpb.ReadResult, error) {
	a := &jobpb.ReadResult{AuthRevision: newestAuth(all)}
	switch what := r.What.(type) {
	case *jobpb.Read_Peek:
		a.Job = firstJob(each(all, (*jobpb.ReadResult).GetJob))
	case *jobpb.Read_Topic:
		a.Topic = sumTopics(each(all, (*jobpb.ReadResult).GetTopic))
	case *jobpb.Read_Topics:
		a.Topics = topicsByName(each(all, (*jobpb.ReadResult).GetTopics), int(what.Topics.GetMax()))
	case *jobpb.Read_ConfiguredTopics:
		a.Topics = topicsByName(each(all, (*jobpb.ReadResult).GetTopics), int(what.ConfiguredTopics.GetMax()))
	case *jobpb.Read_Totals:
		a.Totals = sumTotals(each(all, (*jobpb.ReadResult).GetTotals))
	case *jobpb.Read_Schedules:
		a.Schedules = schedulesByName(each(all, (*jobpb.ReadResult).GetSchedules), int(what.Schedules.GetMax()))
	case *jobpb.Read_Forecast:
		a.Forecast = sumForecasts(each(all, (*jobpb.ReadResult).GetForecast))
	case *jobpb.Read_DueTopics:
		a.DueTopics = mergeDueTopics(each(all, (*jobpb.ReadResult).GetDueTopics), int(what.DueTopics.GetMax()))
	case *jobpb.Read_DeadReasons:
		a.DeadReasons = mergeDeadReasons(each(all, (*jobpb.ReadResult).GetDeadReasons), what.DeadReasons)
	case *jobpb.Read_DeadTopics:
		a.DeadTopics = mergeDeadTopics(each(all, (*jobpb.ReadResult).GetDeadTopics), int(what.DeadTopics.GetMax()))
	default:
		return nil, job.Errorf(job.CodeInvalid, "this release does not know the read %T", r.What)
	}
	return a, nil
}

func each[T any](all []*jobpb.ReadResult, get func(*jobpb.ReadResult) T) []T {
	list := make([]T, len(all))
	for i, a := range all {
		list[i] = get(a)
	}
	return list
}

// newestAuth returns the newest revision of tokens that a reply of several groups was made with.
func newestAuth(all []*jobpb.ReadResult) (revision uint64) {
	for _, a := range all {
		revision = max(revision, a.GetAuthRevision())
	}
	return revision
}

// widened returns the read that each shard gets instead of r. The largest of all shards may be small in
// each, so shards are asked for as many as a read may have.
func widened(r *jobpb.Read) *jobpb.Read {
	switch what := r.What.(type) {
	case *jobpb.Read_DueTopics:
		q := &jobpb.DueTopicsQuery{FromMs: what.DueTopics.GetFromMs(), UntilMs: what.DueTopics.GetUntilMs(), Max: job.MaxDueTopics}
		return &jobpb.Read{What: &jobpb.Read_DueTopics{DueTopics: q}}
	case *jobpb.Read_DeadReasons:
		q := &jobpb.DeadReasonsQuery{Topic: what.DeadReasons.GetTopic(), Max: job.MaxDeadGroups}
		return &jobpb.Read{What: &jobpb.Read_DeadReasons{DeadReasons: q}}
	case *jobpb.Read_DeadTopics:
		q := &jobpb.DeadTopicsQuery{Reason: what.DeadTopics.GetReason(), Max: job.MaxDeadGroups}
		return &jobpb.Read{What: &jobpb.Read_DeadTopics{DeadTopics: q}}
	}
	return r
}

// ask reads from one shard.
func (q *Queue) ask(ctx context.Context, shard int, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	return readFrom(ctx, q.shards[shard], r, stale)
}

// readFrom reads from one group. A group writes its number into what it is asked, so each gets its own.
func readFrom(ctx context.Context, g Group, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	return g.Read(ctx, &jobpb.Read{What: r.What}, stale)
}

// askAll reads from all shards at the same time.
func (q *Queue) askAll(ctx context.Context, r *jobpb.Read, stale bool) ([]*jobpb.ReadResult, error) {
	return q.askShards(ctx, func(int) *jobpb.Read { return r }, stale)
}

// askShards reads from each shard what of returns for it; nil: nothing, and its reply is empty.
func (q *Queue) askShards(ctx context.Context, of func(shard int) *jobpb.Read, stale bool) ([]*jobpb.ReadResult, error) {
	all, errs := make([]*jobpb.ReadResult, len(q.shards)), make([]error, len(q.shards))
	q.each(func(shard int, g Group) {
		r := of(shard)
		if r == nil {
			all[shard] = &jobpb.ReadResult{}
			return
		}
		all[shard], errs[shard] = readFrom(ctx, g, r, stale)
	})
	for shard, err := range errs {
		if err != nil {
			return nil, inShard(shard, err)
		}
	}
	return all, nil
}

// namespaces reads from the config group which namespaces there are, and from the shards what they hold.
func (q *Queue) namespaces(ctx context.Context, r *jobpb.Read, stale bool) (a *jobpb.ReadResult, err error) {
	var defined *jobpb.ReadResult
	var failed error
	var call sync.WaitGroup
	call.Go(func() { defined, failed = readFrom(ctx, q.config, r, stale) })
	all, err := q.askAll(ctx, r, stale)
	call.Wait()
	if err = cmp.Or(failed, err); err != nil {
		return nil, err
	}
	a = &jobpb.ReadResult{AuthRevision: max(defined.AuthRevision, newestAuth(all))}
	for _, n := range defined.Namespaces {
		sum := &jobpb.NamespaceUse{Namespace: n.Namespace}
		for _, of := range all {
			for _, use := range of.Namespaces {
				if use.GetNamespace().GetName() == n.GetNamespace().GetName() {
					sum.Jobs += use.Jobs
					sum.Bytes += use.Bytes
					sum.Topics = max(sum.Topics, use.Topics)
				}
			}
		}
		a.Namespaces = append(a.Namespaces, sum)
	}
	return a, nil
}

// jobsByID returns the jobs in the order of their ids, and ends where one shard had no room for
// the next, or where the reply is full.
func (q *Queue) jobsByID(ctx context.Context, query *jobpb.JobsByID, stale bool) (*jobpb.ReadResult, error) {
	of := make([][]string, len(q.shards))
	for _, id := range query.GetIds() {
		shard := q.shardOf(id)
		of[shard] = append(of[shard], id)
	}
	all, err := q.askShards(ctx, func(shard int) *jobpb.Read {
		if len(of[shard]) == 0 {
			return nil
		}
		return &jobpb.Read{What: &jobpb.Read_JobsById{JobsById: &jobpb.JobsByID{Ids: of[shard], Body: query.Body}}}
	}, stale)
	if err != nil {
		return nil, err
	}
	a := &jobpb.ReadResult{AuthRevision: newestAuth(all)}
	bytes := 0
	for _, id := range query.GetIds() {
		from := all[q.shardOf(id)]
		if len(from.ById) == 0 || bytes >= job.MaxListBytes {
			break
		}
		a.ById = append(a.ById, from.ById[0])
		bytes += jobBytes(from.ById[0])
		from.ById = from.ById[1:]
	}
	return a, nil
}

// jobBytes is what a job counts in a page of which the bytes are bounded.
func jobBytes(j *jobpb.Job) int {
	return len(j.Body) + j.Options.SizeVT() + len(j.Reason) + len(j.LastError)
}

// firstJob returns the job that is the first of a list, of which jobs are the first of each shard; nil: there is none.
func firstJob(jobs []*jobpb.Job) *jobpb.Job {
	jobs = slices.DeleteFunc(jobs, func(j *jobpb.Job) bool { return j == nil })
	if len(jobs) == 0 {
		return nil
	}
	return slices.MinFunc(jobs, func(a, b *jobpb.Job) int {
		return cmp.Or(comparePlaces(placeOf(a), placeOf(b)), cmp.Compare(a.DiedMs, b.DiedMs), cmp.Compare(a.Seq, b.Seq))
	})
}
