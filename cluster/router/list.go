package router

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

// The order of a listing over shards, and its cursors:
//
// Jobs that wait or are reserved, retained jobs, and jobs by id are in the order that they have in one
// shard: places, with the seq as their last part, and ids are unique in the cluster. So where a
// page ended is a mark that all shards understand.
//
// Dead jobs are ordered by a rank that their topic gave them in their shard, and jobs by header by the
// header that led to them: no order of several shards follows from these. They are listed
// shard by shard, and the seq in a mark says in which shard a page ended.

// jobs returns a page of jobs.
func (q *Queue) jobs(ctx context.Context, query *jobpb.JobQuery, stale bool) (*jobpb.ReadResult, error) {
	dead := query.State == jobpb.State_STATE_DEAD || query.After.GetState() == jobpb.State_STATE_DEAD
	byID := query.Filter.GetIdPrefix() != ""
	if query.ByHeader || dead && !byID {
		return q.shardByShard(ctx, query, stale)
	}
	all, err := q.askAll(ctx, readOf(query), stale)
	if err != nil {
		return nil, err
	}
	a := &jobpb.ReadResult{AuthRevision: newestAuth(all)}
	pages := each(all, (*jobpb.ReadResult).GetJobs)
	if byID {
		a.Jobs = mergePages(pages, query, byIDs)
		return a, nil
	}
	anyDead := false
	for _, p := range pages {
		anyDead = withoutDead(p) || anyDead
	}
	a.Jobs = mergePages(pages, query, byPlaces)
	if a.Jobs.Next != nil || !anyDead {
		return a, nil
	}
	rest := proto.CloneOf(query)
	rest.After = beginOf(query, 0)
	if rest.Max -= uint32(len(a.Jobs.Jobs)); rest.Max == 0 || bytesOf(a.Jobs) >= job.MaxListBytes {
		a.Jobs.Next = rest.After
		return a, nil
	}
	b, err := q.shardByShard(ctx, rest, stale)
	if err != nil {
		return nil, err
	}
	b.AuthRevision = max(b.AuthRevision, a.AuthRevision)
	b.Jobs.Jobs = append(a.Jobs.Jobs, b.Jobs.Jobs...)
	return b, nil
}

func readOf(query *jobpb.JobQuery) *jobpb.Read {
	return &jobpb.Read{What: &jobpb.Read_Jobs{Jobs: query}}
}

func bytesOf(p *jobpb.JobPage) (n int) {
	for _, j := range p.Jobs {
		n += jobBytes(j)
	}
	return n
}

// withoutDead ends a page before the dead jobs, which come last, and reports whether there may be any.
func withoutDead(p *jobpb.JobPage) bool {
	found := false
	if p.Next.GetState() == jobpb.State_STATE_DEAD {
		p.Next, found = nil, true
	}
	if first := slices.IndexFunc(p.Jobs, func(j *jobpb.Job) bool { return j.State == jobpb.State_STATE_DEAD }); first >= 0 {
		p.Jobs, found = p.Jobs[:first], true
	}
	return found
}

// shardByShard lists the jobs of one shard after the other.
func (q *Queue) shardByShard(ctx context.Context, query *jobpb.JobQuery, stale bool) (*jobpb.ReadResult, error) {
	a := &jobpb.ReadResult{Jobs: &jobpb.JobPage{}}
	query = proto.CloneOf(query)
	shard := q.listedShard(query.After)
	query.After = withoutBegin(query, query.After)
	for bytes := 0; ; {
		part, err := q.ask(ctx, shard, readOf(query), stale)
		if err != nil {
			return nil, inShard(shard, err)
		}
		page := part.GetJobs()
		a.AuthRevision = max(a.AuthRevision, part.AuthRevision)
		a.Jobs.Jobs = append(a.Jobs.Jobs, page.GetJobs()...)
		a.Jobs.Incomplete = a.Jobs.Incomplete || page.GetIncomplete()
		if a.Jobs.Next = page.GetNext(); a.Jobs.Next != nil {
			if query.ByHeader && a.Jobs.Next.Seq == 0 { // the page ended before the first job of a header
				a.Jobs.Next.Place = &jobpb.Place{Seq: uint64(shard) + 1}
			}
			return a, nil
		}
		if shard++; shard == len(q.shards) {
			return a, nil
		}
		query.Max -= uint32(len(page.GetJobs()))
		begin := beginOf(query, shard)
		if bytes += bytesOf(page); query.Max == 0 || bytes >= job.MaxListBytes {
			a.Jobs.Next = begin
			return a, nil
		}
		query.After = withoutBegin(query, begin)
	}
}

// beginPriority is in the marks of beginOf: neither a dead job nor a mark by header has a priority.
const beginPriority = 1

// beginOf returns the mark before the first job of a shard.
func beginOf(query *jobpb.JobQuery, shard int) *jobpb.JobMark {
	m := &jobpb.JobMark{Place: &jobpb.Place{Priority: beginPriority, Seq: uint64(shard) + 1}}
	if query.ByHeader {
		m.Header = query.Filter.GetHeaders()[0].Name
	} else {
		m.State = jobpb.State_STATE_DEAD
	}
	return m
}

// listedShard returns the shard in which a page ended; nil: the listing begins.
func (q *Queue) listedShard(m *jobpb.JobMark) int {
	switch {
	case m == nil:
		return 0
	case m.Seq != 0:
		return q.shardOfSeq(m.Seq)
	}
	return q.shardOfSeq(m.Place.GetSeq())
}

// withoutBegin returns a mark as the shard that it is of knows it.
func withoutBegin(query *jobpb.JobQuery, m *jobpb.JobMark) *jobpb.JobMark {
	switch {
	case m.GetPlace().GetPriority() != beginPriority:
		return m
	case query.ByHeader:
		return nil
	}
	return &jobpb.JobMark{State: jobpb.State_STATE_DEAD, Place: &jobpb.Place{}}
}

// An order compares marks, and says where a job is.
type order struct {
	mark    func(*jobpb.Job) *jobpb.JobMark
	compare func(a, b *jobpb.JobMark) int
}

var byIDs = order{
	mark:    func(j *jobpb.Job) *jobpb.JobMark { return &jobpb.JobMark{Id: j.Id} },
	compare: func(a, b *jobpb.JobMark) int { return cmp.Compare(a.Id, b.Id) },
}

var byPlaces = order{
	mark: func(j *jobpb.Job) *jobpb.JobMark {
		// Finished and deleted jobs are in one list.
		return &jobpb.JobMark{State: min(j.State, jobpb.State_STATE_FINISHED), Place: placeOf(j)}
	},
	compare: func(a, b *jobpb.JobMark) int {
		return cmp.Or(cmp.Compare(a.State, b.State), comparePlaces(a.Place, b.Place))
	},
}

// placeOf returns the place of a job in its list, except in that of the dead jobs.
func placeOf(j *jobpb.Job) *jobpb.Place {
	switch j.State {
	case jobpb.State_STATE_DELAYED:
		return &jobpb.Place{Instant: j.DueMs, Seq: j.Seq}
	case jobpb.State_STATE_READY:
		return &jobpb.Place{Priority: j.Priority, Instant: j.DueMs, Seq: j.Seq}
	case jobpb.State_STATE_RESERVED:
		return &jobpb.Place{Instant: j.ReservedUntilMs, Seq: j.Seq}
	case jobpb.State_STATE_FINISHED, jobpb.State_STATE_DELETED:
		return &jobpb.Place{Instant: j.RetainedUntilMs, Seq: j.Seq}
	}
	return nil
}

func comparePlaces(a, b *jobpb.Place) int {
	return cmp.Or(cmp.Compare(a.GetPriority(), b.GetPriority()), cmp.Compare(a.GetInstant(), b.GetInstant()), cmp.Compare(a.GetSeq(), b.GetSeq()))
}

// mergePages returns the page of all shards. A page that has a next one may have left out any job
// behind its mark, so the merged page ends at the first such mark, at the latest.
func mergePages(pages []*jobpb.JobPage, query *jobpb.JobQuery, o order) *jobpb.JobPage {
	merged := &jobpb.JobPage{}
	for _, p := range pages {
		merged.Jobs = append(merged.Jobs, p.GetJobs()...)
		merged.Incomplete = merged.Incomplete || p.GetIncomplete()
		if next := p.GetNext(); next != nil && (merged.Next == nil || o.compare(next, merged.Next) < 0) {
			merged.Next = next
		}
	}
	slices.SortFunc(merged.Jobs, func(a, b *jobpb.Job) int { return o.compare(o.mark(a), o.mark(b)) })
	bytes := 0
	for i, j := range merged.Jobs {
		if merged.Next != nil && o.compare(o.mark(j), merged.Next) > 0 {
			merged.Jobs = merged.Jobs[:i]
			break
		}
		if i == int(query.Max) || bytes >= job.MaxListBytes {
			merged.Next = o.mark(merged.Jobs[i-1])
			merged.Jobs = merged.Jobs[:i]
			break
		}
		bytes += jobBytes(j)
	}
	return merged
}
