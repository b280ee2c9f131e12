package router

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func reserve(most uint32) *jobpb.Reserve { return &jobpb.Reserve{Topics: []string{"t"}, Max: most} }

func TestAReserveIsEmptyOnlyIfAllShardsSaySo(t *testing.T) {
	r := newRig(t, 4)
	for i := range 20 {
		r.do(t, add(fmt.Sprint("job-", i), "t"))
		jobs, err := r.Reserve(t.Context(), reserve(1), 0)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		require.Equal(t, fmt.Sprint("job-", i), jobs[0].Id)
	}
	jobs, err := r.Reserve(t.Context(), reserve(1), 0)
	require.NoError(t, err)
	require.Empty(t, jobs)
	r.shards[2].down = job.NotApplied("no leader")
	_, err = r.Reserve(t.Context(), reserve(1), 0)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err), "shard 2 may have jobs")
	r.do(t, add(idIn(1, "job-", 20), "t"))
	jobs, err = r.Reserve(t.Context(), reserve(1), 0)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
}

func TestAReserveTakesAsManyAsAskedFor(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 40)
	seen := map[uint64]bool{}
	for range 4 {
		jobs, err := r.Reserve(t.Context(), reserve(10), 0)
		require.NoError(t, err)
		require.Len(t, jobs, 10)
		for _, j := range jobs {
			require.False(t, seen[j.Seq])
			seen[j.Seq] = true
		}
	}
}

func TestAReserveBeginsWithTheShardsThatThisNodeLeads(t *testing.T) {
	r := newRig(t, 4)
	r.shards[3].here, r.shards[0].known = true, false
	for range 10 {
		order := r.inOrder()
		require.Equal(t, []int{3, 0}, []int{order[0], order[3]})
	}
}

// announced is a group that announces its waits. If it is deaf they end with a job only, as a reserve that is under
// way when its caller gives up.
type announced struct {
	*group
	waits chan struct{} // receives when a wait begins
	deaf  bool
}

func (a announced) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	if wait > 0 {
		a.waits <- struct{}{}
		if a.deaf {
			ctx = context.Background()
		}
	}
	return a.group.Reserve(ctx, r, wait)
}

// announcing returns a router whose groups announce waits.
func (r *rig) announcing(deaf bool) (q *Queue, waits chan struct{}) {
	waits = make(chan struct{})
	groups := make([]Group, len(r.shards))
	for s, g := range r.shards {
		groups[s] = announced{g, waits, deaf}
	}
	return New(r.config, groups), waits
}

func TestAWaitKeepsAsManyJobsAsAskedForAndGivesBackTheOthers(t *testing.T) {
	r := newRig(t, 4)
	q, waits := r.announcing(true)
	for most := range uint32(5) {
		if most == 0 {
			continue
		}
		out := make(chan []*jobpb.Reserved)
		go func() {
			jobs, err := q.Reserve(t.Context(), reserve(most), time.Hour)
			assert.NoError(t, err)
			out <- jobs
		}()
		for range r.shards {
			<-waits
		}
		var ops []*jobpb.Op
		for shard := range uint32(4) {
			ops = append(ops, add(idIn(shard, fmt.Sprint(most, "-"), 0), "t"))
		}
		r.do(t, ops...)
		jobs := <-out
		require.Len(t, jobs, int(most))
		kept := map[string]bool{}
		for _, j := range jobs {
			kept[j.Id] = true
		}
		for _, op := range ops {
			j, err := r.Job(t.Context(), op.GetAdd().Id, false)
			require.NoError(t, err)
			require.Equal(t, kept[j.Id], j.State == jobpb.State_STATE_RESERVED, j.Id)
			require.Equal(t, kept[j.Id], j.Attempts == 1, "what was given back does not count as an attempt")
			r.do(t, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref(j.Id)}}})
		}
	}
}

func TestAWaitEndsWithItsContextAndItsTime(t *testing.T) {
	r := newRig(t, 4)
	jobs, err := r.Reserve(t.Context(), reserve(1), time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, jobs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Reserve(ctx, reserve(1), time.Hour)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(err))
}

func TestTheFirstJobEndsTheWaitsInAllShards(t *testing.T) {
	r := newRig(t, 4)
	r.shards[2].down = job.NotApplied("no leader") // what fails does not end them
	q, waits := r.announcing(false)
	out := make(chan []*jobpb.Reserved)
	go func() {
		jobs, err := q.Reserve(t.Context(), reserve(1), time.Hour)
		assert.NoError(t, err)
		out <- jobs
	}()
	for range r.shards {
		<-waits
	}
	r.do(t, add(idIn(1, "job-", 20), "t"))
	require.Len(t, <-out, 1)
}

// finishing returns what a FinishAndReserve gave, which must be a job or none.
func (r *rig) finishing(t *testing.T, held ...*jobpb.Reserved) *jobpb.Reserved {
	var finishes []*jobpb.Finish
	for _, j := range held {
		finishes = append(finishes, &jobpb.Finish{Ref: &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}})
	}
	results, jobs, err := r.FinishAndReserve(t.Context(), finishes, reserve(1), false)
	require.NoError(t, err)
	require.Len(t, results, len(held))
	for _, result := range results {
		require.NoError(t, job.ResultError(result))
	}
	if len(jobs) == 0 {
		return nil
	}
	return jobs[0]
}

func TestAFinishAndReserveIsOneEntryWhileItsShardHasJobs(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 40)
	held := r.finishing(t)
	shard := r.shardOfSeq(held.Seq)
	before := r.shards[shard].entries
	for range 3 {
		held = r.finishing(t, held)
		require.Equal(t, shard, r.shardOfSeq(held.Seq))
	}
	require.Equal(t, before+3, r.shards[shard].entries)
}

func TestNoShardStarvesWhileAWorkerFinishesAndReserves(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 400)
	held, last, row := r.finishing(t), -1, 0
	for range 399 {
		shard := r.shardOfSeq(held.Seq)
		if shard != last {
			last, row = shard, 0
		}
		row++
		require.LessOrEqual(t, row, 2*maxStays+2, "jobs in a row of one shard")
		held = r.finishing(t, held)
		require.NotNil(t, held)
		if c := r.topic(t, "t"); c.Ready < 40 {
			return // from here on shards run out
		}
	}
}

func TestFinishesOfSeveralShardsHaveTheirResults(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	jobs, err := r.Reserve(t.Context(), reserve(10), 0)
	require.NoError(t, err)
	require.NotNil(t, r.finishing(t, jobs...))
	require.EqualValues(t, 10, r.topic(t, "t").Finished)

	r.shards[0].down = job.Unknown("no reply")
	a, err := r.Reserve(t.Context(), reserve(9), 0)
	require.NoError(t, err)
	var finishes []*jobpb.Finish
	for _, j := range append(a, &jobpb.Reserved{Seq: 1, Generation: 1}) {
		finishes = append(finishes, &jobpb.Finish{Ref: &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}})
	}
	results, _, err := r.FinishAndReserve(t.Context(), finishes, reserve(1), false)
	require.NoError(t, err)
	for i, f := range finishes {
		want := job.Code("")
		if r.shardOfSeq(f.Ref.Seq) == 0 {
			want = job.CodeUnknown
		}
		require.Equal(t, want, job.CodeOfResult(results[i].Code))
	}
}

func TestADeleteAndReserveLooksForTheNextJobInAllShards(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	held := r.finishing(t)
	for range 19 {
		d := &jobpb.Delete{Ref: &jobpb.Ref{Seq: held.Seq, Generation: held.Generation}}
		result, jobs, err := r.DeleteAndReserve(t.Context(), d, reserve(1))
		require.NoError(t, err)
		require.NoError(t, job.ResultError(result))
		require.Len(t, jobs, 1)
		held = jobs[0]
	}
}

func TestAWatchFollowsReservationsOfAllShards(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	jobs, err := r.Reserve(t.Context(), reserve(20), 0)
	require.NoError(t, err)
	w := r.Watch()
	var tokens []job.Token
	for _, j := range jobs {
		tokens = append(tokens, job.Token{Seq: j.Seq, Generation: j.Generation})
	}
	require.NoError(t, w.Add(tokens))
	ended := map[job.Token]bool{}
	for i := range tokens {
		r.do(t, finish(&jobpb.Ref{Seq: tokens[i].Seq, Generation: tokens[i].Generation}))
		<-w.Wake()
		for _, e := range w.Take() {
			require.Equal(t, tokens[i], e)
			ended[e] = true
		}
	}
	require.Len(t, ended, 20)
	w.Close()
	require.NoError(t, w.Add(tokens[:1]), "after its end it follows nothing")
	for s, g := range r.shards {
		require.Zero(t, g.machine.Watching(), "shard %d", s)
	}
}
