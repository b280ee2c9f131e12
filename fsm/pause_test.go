package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestPausedTopicHidesItsReadyJobs(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "u", Priority: 2000}))
	require.Equal(t, jobpb.Code_OK, r.one(opPause("t", 1000, false)).Code)
	until := r.now + 1000
	require.Equal(t, until, r.m.NextDue())
	require.Equal(t, []TopicChange{{Name: "t", NextDue: until}, {Name: "u", Ready: 1}}, r.m.TopicChanges())

	r.reopen()
	topic := r.topic("t")
	require.EqualValues(t, 1, topic.Ready, "the job is there all the same")
	require.EqualValues(t, 1, topic.Urgent)
	require.Equal(t, until, topic.PausedUntilMs)
	require.EqualValues(t, 1000, topic.PauseMs)
	res := r.one(opReserve(5, "t", "u"))
	require.Len(t, res.Jobs, 1)
	require.Equal(t, "u", res.Jobs[0].Topic)

	// Only an Advance ends it, and not before its instant.
	r.now = until - 1
	r.one(opAdvance(10))
	require.Empty(t, r.one(opReserve(1, "t")).Jobs)
	r.now = until
	rs := r.do(opReserve(1, "t"), opAdvance(1), opReserve(1, "t"))
	require.Empty(t, rs[0].Jobs)
	require.Zero(t, rs[1].Count, "a pause is no job")
	require.False(t, rs[1].More)
	require.Len(t, rs[2].Jobs, 1)
	topic = r.topic("t")
	require.Zero(t, topic.PausedUntilMs)
	require.Zero(t, topic.PauseMs)
	require.EqualValues(t, 1, topic.Pauses)
	require.Zero(t, topic.Urgent, "reserved jobs are not counted")
}

func TestPauseIsReplacedOrEnded(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opPause("t", 1000, false))
	r.now += 10
	r.one(opPause("t", 5, false))
	require.Equal(t, r.now+5, r.topic("t").PausedUntilMs)
	r.one(opPause("t", 0, false))
	topic := r.topic("t")
	require.Zero(t, topic.PausedUntilMs)
	require.EqualValues(t, 3, topic.Pauses)
	require.Zero(t, r.m.NextDue())
	require.Len(t, r.one(opReserve(1, "t")).Jobs, 1)
}

func TestPauseLetsTimePass(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", TtrMs: 20}), opReserve(1, "t"), opAdd(&jobpb.Add{Topic: "t", DelayMs: 30}), opPause("t", 100, false))
	require.Equal(t, r.now+20, r.m.NextDue(), "a reservation ends in a paused topic too")
	require.Equal(t, r.now+100, r.m.TopicChanges()[0].NextDue, "but nobody gets the job before the pause ends")
	r.now += 30
	require.EqualValues(t, 2, r.one(opAdvance(10)).Count)
	require.EqualValues(t, 2, r.topic("t").Ready)
	require.EqualValues(t, 1, r.topic("t").Timeouts)
	require.Empty(t, r.one(opReserve(2, "t")).Jobs)
	r.now += 70
	require.Len(t, r.do(opAdvance(10), opReserve(2, "t"))[1].Jobs, 2)
}

func TestPauseOfATopicWithoutJobs(t *testing.T) {
	r := newRig(t, Options{maxTopics: 1})
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opPause("t", 1000, false)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opPause("", 1000, true)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opPause("t", -1, true)).Code)
	require.Equal(t, jobpb.Code_INVALID, r.one(opPause("t", maxPauseMS+1, true)).Code)
	require.Empty(t, r.m.TopicChanges())

	require.Equal(t, jobpb.Code_OK, r.one(opPause("t", 2*hourMS, true)).Code)
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, r.one(opPause("u", 1000, true)).Code)
	r.now += hourMS
	r.one(opAdvance(10))
	require.Len(t, r.m.TopicChanges(), 1, "it is kept while it is paused")
	r.now += hourMS
	r.one(opAdvance(10))
	require.Empty(t, r.m.TopicChanges())
	require.Equal(t, jobpb.Code_OK, r.one(opPause("u", maxPauseMS, true)).Code)
}

func TestAPauseEndsAtAnInstantOrNotAtAll(t *testing.T) {
	pause := func(op *jobpb.PauseTopic) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: op}} }
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	require.Equal(t, r.now+50, r.one(pause(&jobpb.PauseTopic{Topic: "t", UntilMs: r.now + 50})).DueMs)
	require.EqualValues(t, 50, r.topic("t").PauseMs)
	require.Zero(t, r.one(pause(&jobpb.PauseTopic{Topic: "t", UntilMs: r.now})).DueMs, "it is over")
	require.Len(t, r.do(opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1)}))[0].Jobs, 1)

	require.EqualValues(t, job.NeverMS, r.one(pause(&jobpb.PauseTopic{Topic: "t", Endless: true})).DueMs)
	require.Equal(t, []TopicChange{{Name: "t"}}, r.m.TopicChanges())
	require.Zero(t, r.m.NextDue(), "nothing will happen by itself")
	r.now += maxPauseMS
	r.one(opAdvance(10))
	require.Empty(t, r.one(opReserve(1, "t")).Jobs)
	r.reopen()
	require.EqualValues(t, job.NeverMS, r.topic("t").PausedUntilMs)
	r.one(opDelete(bySeq(1)))
	r.now += 10 * topicKeepMS
	r.one(opAdvance(10))
	require.NotEmpty(t, r.m.topics, "a paused topic is kept")
	require.Zero(t, r.one(opPause("t", 0, false)).DueMs)
	r.one(opAdvance(10))
	require.Empty(t, r.m.topics)

	for _, bad := range []*jobpb.PauseTopic{
		{Topic: "t", PauseMs: 1, UntilMs: r.now + 1}, {Topic: "t", PauseMs: 1, Endless: true}, {Topic: "t", UntilMs: -1},
		{Topic: "t", UntilMs: r.now + maxPauseMS + 1}, {Topic: "t", UntilMs: 1, Endless: true},
	} {
		require.Equal(t, jobpb.Code_INVALID, r.one(pause(bad)).Code, "%v", bad)
	}
}
