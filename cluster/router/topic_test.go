package router

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// bury reserves and buries all ready jobs of a topic.
func (r *rig) bury(t *testing.T, topic string) {
	jobs, err := r.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{topic}, Max: 1000}, 0)
	require.NoError(t, err)
	for _, j := range jobs {
		r.do(t, &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{Ref: &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}, Reason: "broken"}}})
	}
}

func (r *rig) topic(t *testing.T, name string) *jobpb.Topic {
	c, err := r.Topic(t.Context(), name, false)
	require.NoError(t, err)
	return c
}

func purgeOf(topic string, state jobpb.State, most, scan uint32) *jobpb.Purge {
	return &jobpb.Purge{Topic: topic, State: state, Max: most, Sweep: &jobpb.Sweep{Scan: scan}}
}

func TestASweepGoesOverAllShardsAndEndsAtItsMost(t *testing.T) {
	for _, shards := range []int{2, 4, 16} {
		for _, most := range []uint32{1, 3, 7, 100} {
			for _, scan := range []uint32{1, 5, 100} {
				r := newRig(t, shards)
				r.fill(t, "t", 40)
				k, steps := purgeOf("t", jobpb.State_STATE_READY, most, scan), 0
				for total := uint32(0); ; {
					result := r.do(t, &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: k}})[0]
					require.LessOrEqual(t, result.Count, most)
					total += result.Count
					require.EqualValues(t, 40-total, r.topic(t, "t").Ready)
					k.Sweep.From = result.GetDetails().GetNext()
					if steps++; k.Sweep.From == nil {
						require.EqualValues(t, 40, total)
						break
					}
					require.EqualValues(t, total, k.Sweep.From.Done)
					require.Less(t, steps, 60)
				}
			}
		}
	}
}

func TestASweepWithAFilterReachesItsEnd(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 40)
	k := purgeOf("t", jobpb.State_STATE_READY, 100, 3)
	k.Sweep.Filter = &jobpb.Filter{IdPrefix: "t-3"}
	total := uint32(0)
	for {
		result := r.do(t, &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: k}})[0]
		total += result.Count
		if k.Sweep.From = result.GetDetails().GetNext(); k.Sweep.From == nil {
			break
		}
	}
	require.EqualValues(t, 11, total)
}

func TestASweepThatAShardFailsSaysWhatWasDone(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 40)
	r.shards[2].down = job.Unknown("no reply")
	results, err := r.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_Purge{Purge: purgeOf("t", jobpb.State_STATE_READY, 1000, 1000)}}})
	require.NoError(t, err)
	require.ErrorContains(t, job.ResultError(results[0]), "shard 2: no reply; before that ")
	require.Equal(t, job.CodeUnknown, job.CodeOf(job.ResultError(results[0])))
}

func TestKickedJobsAreSpreadOverAllShardsAtOneRate(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	r.bury(t, "t")
	k := &jobpb.KickTopic{Topic: "t", Max: 1000, RateMilli: 1000, Sweep: &jobpb.Sweep{Scan: 1000}}
	require.EqualValues(t, 20, r.do(t, &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: k}})[0].Count)
	due := map[int64]int{}
	for i := range 20 {
		j, err := r.Job(t.Context(), fmt.Sprint("t-", i), false)
		require.NoError(t, err)
		due[j.DueMs-r.clock]++
	}
	for i := range int64(20) {
		require.Equal(t, 1, due[i*1000], "jobs that are due after %d s", i)
	}
}

func TestAKickTakesDelayedJobsOnlyIfNoShardHasDeadOnes(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 3)
	r.bury(t, "t")
	for i := range 12 {
		later := add(fmt.Sprint("later-", i), "t")
		later.GetAdd().DelayMs = 1_000_000
		r.do(t, later)
	}
	kick := &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "t", Max: 5, OrDelayed: true}}}
	require.EqualValues(t, 3, r.do(t, kick)[0].Count)
	require.EqualValues(t, 12, r.topic(t, "t").Delayed)
	require.EqualValues(t, 5, r.do(t, kick)[0].Count)
	require.EqualValues(t, 7, r.topic(t, "t").Delayed)
}

func TestAMoveOfATopicTakesAllShards(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 40)
	r.fill(t, "u", 40)
	move := &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Topic: "t", To: "u", Max: 15}}}
	moved := uint32(0)
	for more := true; more; {
		result := r.do(t, move)[0]
		require.LessOrEqual(t, result.Count, uint32(15))
		moved, more = moved+result.Count, result.More
	}
	require.EqualValues(t, 40, moved)
	require.EqualValues(t, 80, r.topic(t, "u").Ready)
}

func TestAPauseHoldsInEveryShard(t *testing.T) {
	r := newRig(t, 4)
	pause := &jobpb.PauseTopic{Topic: "t", PauseMs: 60_000}
	refused, err := r.Do(t.Context(), []*jobpb.Op{{Kind: &jobpb.Op_PauseTopic{PauseTopic: pause}}})
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_NOT_FOUND, refused[0].Code, "no shard has the topic")

	r.do(t, add("a", "t")) // one shard has it
	require.Equal(t, r.clock+60_000, r.do(t, &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: pause}})[0].DueMs)
	r.fill(t, "t", 20)
	jobs, err := r.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 100}, 0)
	require.NoError(t, err)
	require.Empty(t, jobs)
	require.Equal(t, r.clock+60_000, r.topic(t, "t").PausedUntilMs)

	r.do(t, &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t"}}})
	jobs, err = r.Reserve(t.Context(), &jobpb.Reserve{Topics: []string{"t"}, Max: 100}, 0)
	require.NoError(t, err)
	require.Len(t, jobs, 21)
}

func TestAPauseThatReachesOnlySomeShardsNamesTheOthers(t *testing.T) {
	r := newRig(t, 4)
	r.shards[1].down, r.shards[3].down = job.NotApplied("no leader"), job.NotApplied("no leader")
	pause := &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", PauseMs: 1000, Create: true}}}
	results, err := r.Do(t.Context(), []*jobpb.Op{pause})
	require.NoError(t, err)
	require.EqualError(t, job.ResultError(results[0]), "it was done in all shards but 1, 3; repeat it: shard 1: no leader")
	require.Equal(t, job.CodeUnknown, job.CodeOf(job.ResultError(results[0])))
	for _, g := range r.shards {
		g.down = job.NotApplied("no leader")
	}
	results, err = r.Do(t.Context(), []*jobpb.Op{pause})
	require.NoError(t, err)
	require.Equal(t, job.CodeNotApplied, job.CodeOf(job.ResultError(results[0])), "no shard did it")
}

func TestATopicIsDroppedOnlyWhenNoShardHasAJobOfIt(t *testing.T) {
	r := newRig(t, 4)
	r.fill(t, "t", 20)
	r.do(t, &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", PauseMs: 60_000}}})
	r.do(t, &jobpb.Op{Kind: &jobpb.Op_ReserveJob{ReserveJob: &jobpb.ReserveJob{Ref: ref("t-7"), TtrMs: 60_000}}})
	k := purgeOf("t", jobpb.State_STATE_READY, 1000, 1000)
	k.DropEmpty = true
	purge := &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: k}}
	require.EqualValues(t, 19, r.do(t, purge)[0].Count)
	for s, g := range r.shards {
		a, err := g.Read(t.Context(), &jobpb.Read{What: &jobpb.Read_Topic{Topic: "t"}}, false)
		require.NoError(t, err)
		require.NotZero(t, a.Topic.PausedUntilMs, "pause in shard %d", s)
	}
	r.do(t, finish(ref("t-7")))
	require.Zero(t, r.do(t, purge)[0].Count)
	topics, err := r.Topics(t.Context(), "", 10, false)
	require.NoError(t, err)
	require.Empty(t, topics)
}
