package router

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// pagesOf lists all jobs of a query, page by page.
func (r *rig) pagesOf(t *testing.T, query *jobpb.JobQuery) (jobs []*jobpb.Job) {
	for range 1000 {
		page, err := r.Jobs(t.Context(), query, false)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Jobs), int(query.Max))
		jobs = append(jobs, page.Jobs...)
		if page.Next == nil {
			return jobs
		}
		query.After = page.Next
		require.NoError(t, job.CheckJobQuery(query), "a mark is one that a cursor may have")
	}
	require.Fail(t, "the listing does not end")
	return nil
}

// mixed makes jobs in all states, and returns their ids by state.
func (r *rig) mixed(t *testing.T) map[jobpb.State][]string {
	r.do(t, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{
		RetainMs: 1_000_000, IndexHeaders: []string{"color", "size"},
	}}}}, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "u", Settings: &jobpb.TopicSettings{IndexHeaders: []string{"size"}}}}})
	ids := map[jobpb.State][]string{}
	for i := range 60 {
		state := jobpb.State(1 + i%6)
		op := add(fmt.Sprint("job-", i), "t")
		op.GetAdd().Options = &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "color", Value: "red"}, {Name: "size", Value: "xl"}}}
		op.GetAdd().Priority = uint32(i % 3)
		if state == jobpb.State_STATE_DELAYED {
			op.GetAdd().DelayMs = int64(1_000_000 + i%7)
		}
		r.do(t, op)
		id := ref(op.GetAdd().Id)
		if state == jobpb.State_STATE_RESERVED || state == jobpb.State_STATE_DEAD || state == jobpb.State_STATE_FINISHED {
			r.do(t, &jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: id}}})
		}
		switch state {
		case jobpb.State_STATE_DEAD:
			r.do(t, &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: id}}})
		case jobpb.State_STATE_FINISHED:
			r.do(t, finish(id))
		case jobpb.State_STATE_DELETED:
			r.do(t, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: id}}})
		}
		r.clock += 3
		ids[state] = append(ids[state], op.GetAdd().Id)
	}
	other := add("of-u", "u")
	other.GetAdd().Options = &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "color", Value: "red"}, {Name: "size", Value: "xl"}}}
	r.do(t, other)
	return ids
}

func idsOf(jobs []*jobpb.Job) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.Id)
	}
	return ids
}

func TestAListingHasEachJobOnceWhateverThePages(t *testing.T) {
	for _, shards := range []int{2, 4, 16} {
		r := newRig(t, shards)
		ids := r.mixed(t)
		var all []string
		for state := jobpb.State_STATE_DELAYED; state <= jobpb.State_STATE_DEAD; state++ {
			all = append(all, ids[state]...)
		}
		for _, most := range []uint32{1, 2, 7, 40, 1000} {
			for state, want := range ids {
				got := r.pagesOf(t, &jobpb.JobQuery{Topic: "t", State: state, Max: most})
				require.ElementsMatch(t, want, idsOf(got), "%s by %d", state, most)
				if state != jobpb.State_STATE_DEAD {
					require.True(t, slices.IsSortedFunc(got, func(a, b *jobpb.Job) int { return comparePlaces(placeOf(a), placeOf(b)) }), "%s by %d", state, most)
				}
			}
			got := r.pagesOf(t, &jobpb.JobQuery{Topic: "t", Max: most})
			require.ElementsMatch(t, all, idsOf(got), "by %d", most)
			require.True(t, slices.IsSortedFunc(got, func(a, b *jobpb.Job) int { return int(a.State) - int(b.State) }))

			got = r.pagesOf(t, &jobpb.JobQuery{Max: most, Filter: &jobpb.Filter{IdPrefix: "job-"}})
			require.Equal(t, slices.Sorted(slices.Values(all)), idsOf(got), "by id, by %d", most)

			red := &jobpb.Filter{Headers: []*jobpb.Header{{Name: "color", Value: "red"}}}
			require.ElementsMatch(t, all, idsOf(r.pagesOf(t, &jobpb.JobQuery{Topic: "t", ByHeader: true, Max: most, Filter: red})))
			both := &jobpb.Filter{Headers: []*jobpb.Header{{Name: "color", Value: "red"}, {Name: "size", Value: "xl"}}}
			require.ElementsMatch(t, append(slices.Clone(all), "of-u"), idsOf(r.pagesOf(t, &jobpb.JobQuery{ByHeader: true, Max: most, Filter: both})))
		}
	}
}

func TestAPageDoesNotPassWhatAShardHasNotLookedAt(t *testing.T) {
	at := func(seq uint64) *jobpb.Job {
		return &jobpb.Job{State: jobpb.State_STATE_READY, DueMs: int64(seq), Seq: seq}
	}
	mark := func(seq uint64) *jobpb.JobMark {
		return &jobpb.JobMark{State: jobpb.State_STATE_READY, Place: &jobpb.Place{Instant: int64(seq), Seq: seq}}
	}
	query := &jobpb.JobQuery{Max: 3}
	page := func(next *jobpb.JobMark, seqs ...uint64) *jobpb.JobPage {
		p := &jobpb.JobPage{Next: next}
		for _, seq := range seqs {
			p.Jobs = append(p.Jobs, at(seq))
		}
		return p
	}
	seqs := func(p *jobpb.JobPage) (list []uint64) {
		for _, j := range p.Jobs {
			list = append(list, j.Seq)
		}
		return list
	}
	got := mergePages([]*jobpb.JobPage{page(mark(5), 1), page(nil, 2, 8)}, query, byPlaces)
	require.Equal(t, []uint64{1, 2}, seqs(got))
	require.Equal(t, mark(5), got.Next, "the first shard has found nothing from 1 to 5 and may have jobs from there on")
	got = mergePages([]*jobpb.JobPage{page(nil, 1, 3), page(nil, 2, 8)}, query, byPlaces)
	require.Equal(t, []uint64{1, 2, 3}, seqs(got))
	require.Equal(t, mark(3), got.Next)
	got = mergePages([]*jobpb.JobPage{page(mark(3), 1, 3), page(nil)}, query, byPlaces)
	require.Equal(t, mark(3), got.Next)
	got = mergePages([]*jobpb.JobPage{page(nil, 1, 3), page(nil, 2)}, query, byPlaces)
	require.Nil(t, got.Next)
}

func TestJobsByIDEndWhereOneShardHasNoRoom(t *testing.T) {
	r := newRig(t, 4)
	ids := make([]string, 24)
	for i := range ids {
		op := add(fmt.Sprint("job-", i), "t")
		op.GetAdd().Body = make([]byte, 1<<20)
		r.do(t, op)
		ids[i] = op.GetAdd().Id
	}
	ids[3] = "nobody"
	var got []string
	for left := ids; len(left) > 0; {
		jobs, err := r.JobsByID(t.Context(), left, true, false)
		require.NoError(t, err)
		require.NotEmpty(t, jobs)
		bytes := 0
		for i, j := range jobs {
			if bytes += len(j.Body); j.Seq == 0 {
				j.Id = left[i]
			}
		}
		require.LessOrEqual(t, bytes, job.MaxListBytes+1<<20)
		got, left = append(got, idsOf(jobs)...), left[len(jobs):]
	}
	require.Equal(t, ids, got)
}
