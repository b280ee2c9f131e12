package router

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/slot"
)

func TestJobsAreInTheShardOfTheirID(t *testing.T) {
	r := newRig(t, 4)
	ids := []string{"a", "order-7", "{order-5}-close", "{order-5}-remind", "nightly@2026-11-30T00:00:00Z", "nightly@now-k"}
	for _, id := range ids {
		r.do(t, add(id, "t"))
		for s, g := range r.shards {
			a, err := g.Read(t.Context(), &jobpb.Read{What: &jobpb.Read_Job{Job: id}}, false)
			require.NoError(t, err)
			require.Equal(t, uint32(s) == slot.Shard(id, 4), a.GetJob() != nil, "%s in shard %d", id, s)
		}
		j, err := r.Job(t.Context(), id, false)
		require.NoError(t, err)
		byNumber, err := r.JobBySeq(t.Context(), j.Seq, false)
		require.NoError(t, err)
		require.Equal(t, id, byNumber.Id)
	}
}

func TestAJobWithoutAnIDIsFoundByTheOneThatItGets(t *testing.T) {
	r := newRig(t, 4)
	r.shards[1].here, r.shards[3].here = true, true
	used := map[uint32]int{}
	for range 8 {
		added := r.do(t, add("", "t"))[0]
		used[slot.ShardOfSeq(added.Seq, 4)]++
		require.Equal(t, job.ServerID(0, added.Seq), added.Id)
		j, err := r.Job(t.Context(), added.Id, false)
		require.NoError(t, err)
		require.Equal(t, added.Seq, j.Seq)
	}
	require.Len(t, used, 2, "they go to the shards that this node leads")
	require.NotZero(t, used[1]*used[3])
}

func TestAnAddWithoutAnIDDoesNotWaitForAnElection(t *testing.T) {
	r := newRig(t, 4)
	for s, g := range r.shards {
		if s != 2 {
			g.known, g.down = false, job.NotApplied("no leader")
		}
	}
	for range 8 {
		require.EqualValues(t, 2, slot.ShardOfSeq(r.do(t, add("", "t"))[0].Seq, 4))
	}
}

func TestABatchHasItsResultsInOrderAndOneEntryAShard(t *testing.T) {
	r := newRig(t, 4)
	ops := make([]*jobpb.Op, 100)
	for i := range ops {
		ops[i] = add(fmt.Sprint("job-", i), "t")
	}
	for i, result := range r.do(t, ops...) {
		require.Equal(t, fmt.Sprint("job-", i), result.Id)
	}
	for s, g := range r.shards {
		require.Equal(t, 1, g.entries, "entries of shard %d", s)
	}
	r.do(t, add("x", "t"), &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref("x")}}}, add("x", "u"))
	x, err := r.Job(t.Context(), "x", false)
	require.NoError(t, err)
	require.Equal(t, "u", x.Topic, "the order in a shard is that of the batch")
}

func TestAShardThatFailsIsTheOutcomeOfItsJobsOnly(t *testing.T) {
	for _, why := range []*job.Error{job.Unknown("no reply in time"), job.NotApplied("no leader"), job.Errorf(job.CodeDiskLow, "the disk is low")} {
		r := newRig(t, 4)
		r.shards[1].down = why
		ops := make([]*jobpb.Op, 40)
		for i := range ops {
			ops[i] = add(fmt.Sprint("job-", i), "t")
		}
		results, err := r.Do(t.Context(), ops)
		require.NoError(t, err)
		failed := 0
		for i, result := range results {
			err := job.ResultError(result)
			if slot.Shard(fmt.Sprint("job-", i), 4) != 1 {
				require.NoError(t, err)
				continue
			}
			failed++
			require.Equal(t, why.Code, job.CodeOf(err))
			require.ErrorContains(t, err, "shard 1: "+why.Message)
		}
		require.NotZero(t, failed)
		_, err = r.Do(t.Context(), []*jobpb.Op{add(idIn(1, "job-", 0), "t")})
		require.Equal(t, error(why), err, "a call of one shard has its error")
	}
}

// idIn returns the first id of prefix and a number, from a number on, that is in a shard of 4.
func idIn(shard uint32, prefix string, from int) string {
	for slot.Shard(fmt.Sprint(prefix, from), 4) != shard {
		from++
	}
	return fmt.Sprint(prefix, from)
}

func allOrNone(f *jobpb.Ref, ids ...string) *jobpb.Op {
	k := &jobpb.AtomicAdd{}
	if f != nil {
		k.Finish = &jobpb.Finish{Ref: f}
	}
	for _, id := range ids {
		k.Adds = append(k.Adds, add(id, "t").GetAdd())
	}
	return &jobpb.Op{Kind: &jobpb.Op_AtomicAdd{AtomicAdd: k}}
}

func TestWhatIsDoneTogetherNeedsOneSlot(t *testing.T) {
	r := newRig(t, 4)
	reserved := func(op *jobpb.Op) *jobpb.Ref {
		j := r.do(t, op)[0]
		r.do(t, &jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: &jobpb.Ref{Seq: j.Seq}}}})
		return &jobpb.Ref{Id: j.Id, Seq: j.Seq, Generation: 1}
	}
	tagged, made := reserved(add("{o}-1", "t")), reserved(add("", "t"))
	for _, c := range []struct {
		name  string
		op    *jobpb.Op
		cross bool
	}{
		{"one tag", allOrNone(nil, "{o}-2", "{o}-3"), false},
		{"two tags", allOrNone(nil, "{o}-2", "{p}-3"), true},
		// With more shards they may part.
		{"one shard of two slots", allOrNone(nil, idIn(2, "a-", 0), idIn(2, "b-", 0)), true},
		{"ids and none", allOrNone(nil, "{q}-2", "", ""), false},
		{"no ids", allOrNone(nil, "", ""), false},
		{"a finish and another tag", allOrNone(tagged, "{p}-4"), true},
		{"a finish and its tag", allOrNone(tagged, "{o}-4", ""), false},
		{"a finish of a job without a slot, and an id", allOrNone(made, "{o}-5"), true},
		{"a finish of a job without a slot", allOrNone(made, "", ""), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			results, err := r.Do(t.Context(), []*jobpb.Op{c.op})
			require.NoError(t, err)
			if c.cross {
				require.Equal(t, job.CodeCrossSlot, job.CodeOf(job.ResultError(results[0])))
				return
			}
			require.NoError(t, job.ResultError(results[0]))
			for _, part := range results[0].Details.Parts {
				j, err := r.Job(t.Context(), part.Id, false)
				require.NoError(t, err)
				require.Equal(t, part.Seq, j.Seq)
			}
		})
	}
}

func TestARefusedOperationDoesNotStopTheOthers(t *testing.T) {
	r := newRig(t, 4)
	results, err := r.Do(t.Context(), []*jobpb.Op{allOrNone(nil, "{o}-2", "{p}-3"), add("a", "t")})
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_CROSS_SLOT, results[0].Code)
	require.Equal(t, "a", results[1].Id)
}

func TestWhatOnlyALeaderMakesIsSentNowhere(t *testing.T) {
	r := newRig(t, 2)
	results, err := r.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1}}}})
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_INTERNAL, results[0].Code)
}
