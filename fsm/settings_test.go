package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestSettingsOutliveTheTopic(t *testing.T) {
	r := newRig(t, Options{})
	set := r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1)), Revision: 7}}))
	require.EqualValues(t, 1, set.Details.Settings.Revision)
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opDelete(byID("a")))
	r.now += topicKeepMS
	r.one(opAdvance(10))
	require.Empty(t, r.m.topics, "the topic went away")
	r.reopen()
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Topic: "t"})).Code)
	require.Equal(t, jobpb.Code_TOPIC_FULL, r.one(opAdd(&jobpb.Add{Topic: "t"})).Code)
	require.EqualValues(t, 1, r.topic("t").Settings.GetMaxPending())
}

func TestSettingTheSameAgainChangesNothing(t *testing.T) {
	r := newRig(t, Options{})
	one := &jobpb.TopicSettings{MaxPending: new(uint64(1))}
	require.EqualValues(t, 1, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: one})).Details.Settings.Revision)
	require.EqualValues(t, 1, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: one})).Details.Settings.Revision)
	two := &jobpb.TopicSettings{MaxPending: new(uint64(2))}
	require.EqualValues(t, 2, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: two, IfRevision: new(uint64(1))})).Details.Settings.Revision)
	stale := r.one(opSettings(&jobpb.SetTopic{Topic: "t", IfRevision: new(uint64(1))}))
	require.Equal(t, jobpb.Code_CONDITION_FAILED, stale.Code)
	require.Contains(t, stale.Message, "revision 2, not 1")
	require.Nil(t, r.one(opSettings(&jobpb.SetTopic{Topic: "t"})).GetDetails().GetSettings())
	require.Equal(t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: one, IfRevision: new(uint64(0))})).Code, "there are none")
	require.Equal(t, jobpb.Code_CONDITION_FAILED, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: two, IfRevision: new(uint64(0))})).Code)
}

func TestSettingsAreBounded(t *testing.T) {
	r := newRig(t, Options{maxTopics: 2})
	s := &jobpb.TopicSettings{MaxPending: new(uint64(1))}
	r.do(opSettings(&jobpb.SetTopic{Topic: "a", Settings: s}), opSettings(&jobpb.SetTopic{Topic: "b", Settings: s}))
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, r.one(opSettings(&jobpb.SetTopic{Topic: "c", Settings: s})).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "b"})).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "c", Settings: s})).Code)
}

func TestTargetsAreBounded(t *testing.T) {
	r := newRig(t, Options{maxTargets: 2})
	set := func(topic string, s *jobpb.TopicSettings) *jobpb.Result {
		return r.one(opSettings(&jobpb.SetTopic{Topic: topic, Settings: s}))
	}
	target := func(url string) *jobpb.TopicSettings {
		return &jobpb.TopicSettings{Push: &jobpb.PushTarget{Url: url, Secret: "0123456789abcdef"}}
	}
	plain := &jobpb.TopicSettings{MaxPending: new(uint64(1))}
	for topic, s := range map[string]*jobpb.TopicSettings{"a": target("x"), "b": target("x"), "c": plain} {
		require.Equal(t, jobpb.Code_OK, set(topic, s).Code)
	}
	for _, topic := range []string{"c", "d"} {
		refused := set(topic, target("x"))
		require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, refused.Code)
		require.Equal(t, "2 topics have a target for push already, which is the limit", refused.Message)
	}
	require.EqualValues(t, 1, *r.topic("c").Settings.MaxPending, "nothing was changed")
	require.Equal(t, jobpb.Code_OK, set("b", target("y")).Code, "it has one")
	r.reopen()
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, set("c", target("x")).Code)
	require.Equal(t, jobpb.Code_OK, set("a", plain).Code)
	require.Equal(t, jobpb.Code_OK, set("c", target("x")).Code)
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, set("a", target("x")).Code)
	require.Equal(t, jobpb.Code_OK, set("b", nil).Code)
	require.Equal(t, jobpb.Code_OK, set("a", target("x")).Code)
}

// fullTopic has room for two waiting jobs and has them: a is delayed, b is ready.
func fullTopic(t *testing.T) *rig {
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(2))}}))
	for _, res := range r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t", DelayMs: 5}), opAdd(&jobpb.Add{Id: "b", Topic: "t"})) {
		require.Equal(t, jobpb.Code_OK, res.Code)
	}
	return r
}

func TestAFullTopicTakesNoMoreJobs(t *testing.T) {
	r := fullTopic(t)
	full := r.one(opAdd(&jobpb.Add{Id: "c", Topic: "t"}))
	require.Equal(t, jobpb.Code_TOPIC_FULL, full.Code)
	require.Equal(t, `topic "t" has 2 delayed and ready jobs; its limit, max_pending, is 2`, full.Message)
	require.True(t, r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t", DelayMs: 5})).Existing, "the same job is no new one")
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Id: "c", Topic: "u"})).Code)

	r.one(opReserve(1, "t")) // b no longer waits
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Id: "d", Topic: "t"})).Code)
	require.Equal(t, jobpb.Code_OK, r.one(opRelease(&jobpb.Release{Ref: byID("b")})).Code, "a job that is there is never refused")
	require.EqualValues(t, 2, r.topic("t").Ready)
	require.Equal(t, jobpb.Code_TOPIC_FULL, r.one(opAdd(&jobpb.Add{Id: "e", Topic: "t"})).Code)
	r.one(opSettings(&jobpb.SetTopic{Topic: "t"}))
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Id: "e", Topic: "t"})).Code)
}

func TestReplaceInAFullTopicNeedsRoomOfItsOwn(t *testing.T) {
	r := fullTopic(t)
	replace := func(id, topic string) *jobpb.Result {
		return r.one(opAdd(&jobpb.Add{Id: id, Topic: topic, IfExists: jobpb.IfExists_IF_EXISTS_REPLACE}))
	}
	require.True(t, replace("a", "t").Replaced, "it gives its own room")
	r.one(opAdd(&jobpb.Add{Id: "o", Topic: "other"}))
	require.Equal(t, jobpb.Code_TOPIC_FULL, replace("o", "t").Code)
	require.Equal(t, "other", r.job(r.one(opAdd(&jobpb.Add{Id: "o", Topic: "other"})).Seq).Topic, "nothing was changed")
	r.do(opReserve(1, "t"), opBury(&jobpb.Bury{Ref: byID("b")}), opAdd(&jobpb.Add{Id: "c", Topic: "t"}))
	require.Equal(t, jobpb.Code_TOPIC_FULL, replace("b", "t").Code, "a dead job does not wait")
}

func TestAComposeThatDoesNotFitAddsNothing(t *testing.T) {
	r := fullTopic(t)
	r.one(opReserve(1, "t"))
	both := &jobpb.Compose{Finish: &jobpb.Finish{Ref: byID("b")}, Adds: []*jobpb.Add{opAdd(&jobpb.Add{Topic: "t"}).GetAdd(), opAdd(&jobpb.Add{Topic: "t"}).GetAdd()}}
	require.Equal(t, jobpb.Code_TOPIC_FULL, r.one(&jobpb.Op{Kind: &jobpb.Op_Compose{Compose: both}}).Code)
	require.EqualValues(t, 1, r.topic("t").Reserved)
	both.Adds = both.Adds[:1]
	require.Equal(t, jobpb.Code_OK, r.one(&jobpb.Op{Kind: &jobpb.Op_Compose{Compose: both}}).Code)
	require.EqualValues(t, 2, r.topic("t").Delayed+r.topic("t").Ready)
}

func TestATopicMayBeClosedForAdds(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(0))}}))
	require.Equal(t, jobpb.Code_TOPIC_FULL, r.one(opAdd(&jobpb.Add{Topic: "t"})).Code)
	require.Empty(t, r.m.topics, "not even the topic was made")
}

func TestAnAddTakesFromTheTopicWhatItLeavesToIt(t *testing.T) {
	r := newRig(t, Options{})
	set := func(s *jobpb.TopicSettings) { r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: s})) }
	open := func(id string) *jobpb.Add {
		return &jobpb.Add{Id: id, Topic: "t", TtrMs: 100, MaxAttempts: 16, TopicTtr: true, TopicAttempts: true}
	}
	before := r.one(opAdd(open("before")))
	set(&jobpb.TopicSettings{TtrMs: new(int64(700)), MaxAttempts: new(uint32(0))})
	after := r.one(opAdd(open("after")))
	given := r.one(opAdd(&jobpb.Add{Id: "given", Topic: "t", TtrMs: 100, MaxAttempts: 16}))
	for seq, want := range map[uint64][2]int64{before.Seq: {100, 16}, after.Seq: {700, 0}, given.Seq: {100, 16}} {
		j := r.job(seq)
		require.Equal(t, want, [2]int64{j.TtrMs, int64(j.MaxAttempts)}, j.Id)
	}

	set(&jobpb.TopicSettings{TtrMs: new(int64(800)), MaxAttempts: new(uint32(3))})
	for _, id := range []string{"before", "after", "given"} {
		require.True(t, r.one(opAdd(open(id))).Existing, "what is left to the topic is not compared")
	}
	require.True(t, r.one(opAdd(&jobpb.Add{Id: "after", Topic: "t", TtrMs: 700})).Existing, "what is given is compared with what came of it")
	require.Equal(t, jobpb.Code_ID_CONFLICT, r.one(opAdd(&jobpb.Add{Id: "after", Topic: "t", TtrMs: 800})).Code)
	require.EqualValues(t, 700, r.job(after.Seq).TtrMs, "a job keeps what it has")
}

func TestTheTopicsBackoffIsForJobsWithoutOne(t *testing.T) {
	r := newRig(t, Options{})
	r.do(
		opAdd(&jobpb.Add{Id: "a", Topic: "t"}),
		opAdd(&jobpb.Add{Id: "own", Topic: "t", Extras: &jobpb.Extras{Backoff: &jobpb.Backoff{DelaysMs: []int64{0}}}}),
		opAdd(&jobpb.Add{Id: "late", Topic: "t", TtrMs: 10}),
		opReserve(3, "t"),
	)
	// It is asked for when an attempt fails.
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{Backoff: &jobpb.Backoff{DelaysMs: []int64{500}}}}))
	require.EqualValues(t, rigStart+500, r.one(opRelease(&jobpb.Release{Ref: byID("a"), Backoff: true})).DueMs)
	require.Equal(t, jobpb.State_STATE_READY, r.one(opRelease(&jobpb.Release{Ref: byID("own"), Backoff: true})).State)
	r.now += 10
	r.one(opAdvance(10))
	require.EqualValues(t, rigStart+510, r.job(3).DueMs)
}

func TestJobsDueAtOneInstantAreSpread(t *testing.T) {
	const window, jobs = 1000, 500
	r := newRig(t, Options{})
	r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{SpreadMs: window}}))
	due := r.now + 60_000
	tenths := make([]int, 10)
	for i := range jobs {
		res := r.one(opAdd(&jobpb.Add{Id: fmt.Sprint(i), Topic: "t", DueMs: due}))
		late := res.DueMs - due
		require.True(t, late >= 0 && late < window, "never early: %d", late)
		require.Equal(t, res.DueMs, r.job(res.Seq).DueMs)
		tenths[late/(window/10)]++
	}
	for _, n := range tenths {
		require.InDelta(t, jobs/10, n, 3, "evenly: %v", tenths)
	}
	again := r.one(opAdd(&jobpb.Add{Id: "7", Topic: "t", DueMs: due}))
	require.True(t, again.Existing, "what was asked for is compared")
	require.Equal(t, r.job(again.Seq).DueMs, again.DueMs)

	ready := r.one(opAdd(&jobpb.Add{Id: "now", Topic: "t"}))
	require.Equal(t, r.now, ready.DueMs, "what does not wait is not spread")
	moved := r.one(opUpdate(&jobpb.Update{Ref: byID("now"), DueMs: new(due)}))
	postponed := r.one(opAdd(&jobpb.Add{Id: "now", Topic: "t", DueMs: due, IfExists: jobpb.IfExists_IF_EXISTS_POSTPONE}))
	require.Equal(t, moved.DueMs, postponed.DueMs, "a job has one share of the window")
	require.Greater(t, moved.DueMs, due)
}

func TestASpreadOfTheWholeRangeStaysInIt(t *testing.T) {
	require.Zero(t, spread(1<<64-1, 0))
	for _, seq := range []uint64{0, 1, 2, 1 << 32, 1<<64 - 1} {
		for _, window := range []int64{1, 2, 1000, job.MaxSpread.Milliseconds(), 1<<63 - 1} {
			share := spread(seq, window)
			require.True(t, share >= 0 && share < window, "%d in %d: %d", seq, window, share)
		}
	}
}
