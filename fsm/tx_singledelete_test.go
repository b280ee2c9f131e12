package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// oneInEachState adds to topic "t" job 1 delayed, 2 ready, 3 reserved and 4 dead; 3 and 4
// have used their only attempt.
func oneInEachState(r *rig) {
	r.do(opAdd(&jobpb.Add{Topic: "t", DelayMs: 50, MaxAttempts: 1, Body: []byte("delayed")}),
		opAdd(&jobpb.Add{Topic: "t", Priority: 9, MaxAttempts: 1, Body: []byte("ready")}),
		opAdd(&jobpb.Add{Topic: "t", MaxAttempts: 1}),
		opAdd(&jobpb.Add{Topic: "t", MaxAttempts: 1, Body: []byte("dead")}),
		opReserve(2, "t"), opBury(&jobpb.Bury{Ref: bySeq(4), Reason: "no"}))
}

func TestReserveJobTakesAnyJobThatNobodyHolds(t *testing.T) {
	cases := []struct {
		name       string
		seq        uint64
		generation uint32
		body       string
	}{
		{"delayed", 1, 1, "delayed"},
		{"ready", 2, 1, "ready"},
		{"dead", 4, 2, "dead"},
	}
	for _, c := range cases {
		for _, paused := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				r := newRig(t, Options{})
				oneInEachState(r)
				r.now += 5
				if paused {
					r.one(opPause("t", 1000, false))
				}
				res := r.one(opReserveJob(bySeq(c.seq), 0))
				require.Equal(t, jobpb.Code_OK, res.Code, res.Message)
				require.Equal(t, jobpb.State_STATE_RESERVED, res.State)
				require.Len(t, res.Jobs, 1)
				got := res.Jobs[0]
				require.Equal(t, c.body, string(got.Body))
				require.Equal(t, c.generation, got.Generation)
				require.EqualValues(t, 1, got.Attempts, "a dead job's attempts start again")
				require.Equal(t, r.now+60_000, got.ReservedUntilMs)
				r.check()

				// Once released it is ready, even if it was delayed before.
				back := r.one(opRelease(&jobpb.Release{Ref: fenced(c.seq, c.generation), Undelivered: true}))
				require.Equal(t, jobpb.State_STATE_READY, back.State)
				require.LessOrEqual(t, back.DueMs, r.now)
				r.check()
			})
		}
	}
}

func TestReserveJobRefusals(t *testing.T) {
	r := newRig(t, Options{})
	oneInEachState(r)
	before := r.digest()
	require.Equal(t, jobpb.Code_ALREADY_RESERVED, r.one(opReserveJob(bySeq(3), 0)).Code)
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opReserveJob(bySeq(5), 0)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opReserveJob(bySeq(2), -1)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opReserveJob(bySeq(2), maxTTRMS+1)).Code)
	require.Equal(t, before, r.digest())
	require.Equal(t, r.now+7, r.one(opReserveJob(bySeq(2), 7)).Jobs[0].ReservedUntilMs)
}

func TestDeleteSparesReservedJobs(t *testing.T) {
	cases := []struct {
		name string
		ref  *jobpb.Ref
		want jobpb.Code
	}{
		{"delayed", bySeq(1), jobpb.Code_OK},
		{"ready", bySeq(2), jobpb.Code_OK},
		{"reserved, no token", bySeq(3), jobpb.Code_ALREADY_RESERVED},
		{"reserved, wrong token", fenced(3, 2), jobpb.Code_STALE_TOKEN},
		{"reserved, by its holder", fenced(3, 1), jobpb.Code_OK},
		{"dead", bySeq(4), jobpb.Code_OK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			oneInEachState(r)
			require.Equal(t, c.want, r.one(opDeleteSparing(c.ref)).Code)
			require.Equal(t, c.want == jobpb.Code_OK, r.job(c.ref.Seq) == nil)
		})
	}
}

func TestKickTopicFallsBackToDelayedJobs(t *testing.T) {
	r := newRig(t, Options{})
	oneInEachState(r)
	r.do(opAdd(&jobpb.Add{Topic: "t", DelayMs: 70}), opAdd(&jobpb.Add{Topic: "t", DelayMs: 30}))
	require.EqualValues(t, 1, r.one(opKickTopicOrDelayed("t", 5)).Count, "a dead job and no delayed one")
	require.EqualValues(t, 3, r.topic("t").Delayed)
	require.Zero(t, r.one(opKickTopic("t", 5)).Count, "delayed jobs only on request")

	r.now += 4
	require.EqualValues(t, 2, r.one(opKickTopicOrDelayed("t", 2)).Count)
	for seq, want := range map[uint64]jobpb.State{6: jobpb.State_STATE_READY, 1: jobpb.State_STATE_READY, 5: jobpb.State_STATE_DELAYED} {
		require.Equal(t, want, r.job(seq).State, "job %d; the earliest due go first", seq)
	}
	require.Equal(t, r.now, r.job(6).DueMs)
	require.EqualValues(t, 1, r.job(6).Kicks)
	require.EqualValues(t, 1, r.one(opKickTopicOrDelayed("t", job.MaxKick)).Count)
	require.Zero(t, r.one(opKickTopicOrDelayed("t", 1)).Count)
}

func TestReturnedJobIsReadyAsItWas(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", Priority: 5, DelayMs: 10, MaxAttempts: 2}))
	r.now += 10
	r.do(opAdvance(1), opReserve(1, "t"))
	r.now += 100
	res := r.one(opRelease(&jobpb.Release{
		Ref: fenced(1, 1), Returned: true,
		DelayMs: 40, SetPriority: true, Priority: 1, Reason: "ignored",
	}))
	require.Equal(t, jobpb.State_STATE_READY, res.State)
	j := r.job(1)
	require.EqualValues(t, rigStart+10, j.DueMs)
	require.EqualValues(t, 10, j.DelayMs)
	require.EqualValues(t, 5, j.Priority)
	require.EqualValues(t, 1, j.Attempts)
	require.Zero(t, j.Releases)
	require.Empty(t, j.Reason)

	r.one(opReserve(1, "t"))
	res = r.one(opRelease(&jobpb.Release{Ref: fenced(1, 2), Returned: true}))
	require.Equal(t, jobpb.State_STATE_DEAD, res.State, "its attempts are used up")
	require.Equal(t, "the consumer's connection ended on attempt 2 of 2", r.job(1).Reason)
}

func TestUrgentCountsReadyJobsOfSmallPriorities(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", Priority: 1023}), opAdd(&jobpb.Add{Topic: "t", Priority: 1024}), opAdd(&jobpb.Add{Topic: "t", DelayMs: 5}))
	require.EqualValues(t, 1, r.topic("t").Urgent)
	r.do(opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), SetPriority: true, Priority: 1024}))
	require.Zero(t, r.topic("t").Urgent)
	r.now += 5
	r.one(opAdvance(5))
	require.EqualValues(t, 1, r.topic("t").Urgent)
	r.one(opDelete(bySeq(3)))
	require.Zero(t, r.topic("t").Urgent)
}

func TestPeekShowsTheHeadOfAList(t *testing.T) {
	r := newRig(t, Options{})
	oneInEachState(r)
	r.do(opAdd(&jobpb.Add{Topic: "t", DelayMs: 20}), opAdd(&jobpb.Add{Topic: "t", Priority: 3}), opPause("t", 1000, false))
	v := r.m.View()
	defer v.Close()
	for state, want := range map[jobpb.State]uint64{
		jobpb.State_STATE_DELAYED: 5, jobpb.State_STATE_READY: 6, jobpb.State_STATE_RESERVED: 3, jobpb.State_STATE_DEAD: 4,
	} {
		j, found, err := v.Peek("t", state)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, want, j.Seq)
		require.Equal(t, state, j.State)
		_, found, err = v.Peek("nowhere", state)
		require.NoError(t, err)
		require.False(t, found)
	}
	for _, bad := range []jobpb.State{-1, 0, 5} {
		_, _, err := v.Peek("t", bad)
		require.Error(t, err)
	}
}
