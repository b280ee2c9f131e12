package fsm

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// topicsAtLimit drops the topic that has been idle for longest if there are too many.
func (m *model) topicsAtLimit() bool {
	var oldest *modelTopic
	for _, t := range m.topics {
		full := t.limit == nil || t.limit.when(t.limit.burst*1_000_000) <= m.clock
		if slices.ContainsFunc(m.all(), func(j *modelJob) bool { return j.Topic == t.Name }) || t.PausedUntilMs != 0 || !full || m.named[t.Name] {
			continue
		}
		if oldest == nil || cmp.Or(cmp.Compare(t.emptySince, oldest.emptySince), cmp.Compare(t.number, oldest.number)) < 0 {
			oldest = t
		}
	}
	if m.version >= 2 && len(m.topics) >= m.maxTopics && oldest != nil {
		delete(m.topics, oldest.Name)
	}
	return len(m.topics) >= m.maxTopics
}

// A topic for each request must not shut out all new topics for an hour.
func TestAtTheLimitTheTopicsThatAreIdleForLongestGo(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxTopics: 3}})
	add := func(topic string) jobpb.Code { return r.one(opAdd(&jobpb.Add{Topic: topic, Id: topic})).Code }
	end := func(topic string) {
		r.now++
		require.Equal(t, jobpb.Code_OK, r.one(opDelete(byID(topic))).Code)
	}
	for _, topic := range []string{"a", "b", "c"} {
		require.Equal(t, jobpb.Code_OK, add(topic))
	}
	end("b")
	end("a")
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, add("d"), "before version 2")
	require.Equal(t, jobpb.Code_OK, r.one(opRaise(2)).Code)
	require.Equal(t, jobpb.Code_OK, add("d"))
	require.Zero(t, r.topic("b").Added, "it was idle for longer than a")
	require.EqualValues(t, 1, r.topic("a").Added)
	require.Equal(t, jobpb.Code_OK, add("b"), "the topic can be made again")
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, add("e"), "all have jobs")
	end("d")
	require.Equal(t, jobpb.Code_OK, add("f"), "one of them has none any more")

	end("c")
	r.do(opPause("c", 1000, false))
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, add("e"), "a pause is kept")
	r.reopen()
	r.do(opPause("c", 0, false))
	require.Equal(t, jobpb.Code_OK, add("e"))
}

// A chain or a batch that is all or nothing gets its topics like other adds. Topics that it names stay.
func TestAtTheLimitAnAtomicAddGetsTheTopicsOfIdleOnes(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxTopics: 3}})
	atomic := func(topics ...string) jobpb.Code {
		op := &jobpb.AtomicAdd{}
		for _, topic := range topics {
			op.Adds = append(op.Adds, &jobpb.Add{Topic: topic, TtrMs: 1000})
		}
		return r.one(opAtomicAdd(op)).Code
	}
	for _, topic := range []string{"a", "b", "c"} {
		r.now++
		r.do(opAdd(&jobpb.Add{Topic: topic, Id: topic}), opDelete(byID(topic)))
	}
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, atomic("d", "a"), "before version 2")
	require.Equal(t, jobpb.Code_OK, r.one(opRaise(2)).Code)
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, atomic("d", "e", "f", "a"), "three of four")
	require.EqualValues(t, 1, r.topic("a").Added)
	require.EqualValues(t, 1, r.topic("b").Added, "what is refused changes nothing")
	require.Equal(t, jobpb.Code_OK, atomic("d", "a", "e"))
	require.EqualValues(t, 2, r.topic("a").Added, "it was idle for longest, and the batch names it")
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, atomic("f"), "all have jobs")
	r.reopen()
	require.EqualValues(t, 1, r.topic("e").Added)
}

func TestAPurgeDropsAnEmptyTopicIfItShould(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxTopics: 1}})
	purge := func(drop bool) *jobpb.Result {
		return r.one(opPurge(&jobpb.Purge{Topic: "t", State: jobpb.State_STATE_READY, Max: 1, Sweep: &jobpb.Sweep{Scan: 10}, DropEmpty: drop}))
	}
	require.Equal(t, jobpb.Code_OK, r.one(opRaise(2)).Code)
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opPause("t", 1000, false))
	require.Equal(t, jobpb.Code_OK, purge(true).Code)
	require.EqualValues(t, 2, r.topic("t").Added, "it has a job")
	require.Equal(t, jobpb.Code_OK, purge(false).Code)
	require.Equal(t, jobpb.Code_TOO_MANY_TOPICS, r.one(opAdd(&jobpb.Add{Topic: "u"})).Code, "it is empty, and paused")
	require.Equal(t, jobpb.Code_OK, purge(true).Code)
	require.Zero(t, r.topic("t").Added)
	require.Zero(t, r.topic("t").PausedUntilMs)
	require.Equal(t, jobpb.Code_OK, purge(true).Code, "it may be repeated")
	r.reopen()
	require.Equal(t, jobpb.Code_OK, r.one(opAdd(&jobpb.Add{Topic: "u"})).Code)
}

func TestHowMuchOfTheLimitsIsInUse(t *testing.T) {
	r := newRig(t, Options{limits: job.Limits{MaxTopics: 5}})
	topics := func() int { return r.m.LimitUses()[0].Used }
	r.do(opAdd(&jobpb.Add{Topic: "a", Id: "a"}), opAdd(&jobpb.Add{Topic: "b", Id: "b"}), opDelete(byID("b")))
	require.Equal(t, 2, topics(), "an idle topic counts before version 2")
	require.Equal(t, jobpb.Code_OK, r.one(opRaise(2)).Code)
	require.Equal(t, 1, topics())
	r.do(opPause("b", 1000, false))
	require.Equal(t, 2, topics(), "a paused one does not go")
	r.do(opPause("b", 0, false))
	for _, id := range []string{"b", "c", "d"} {
		r.do(opAdd(&jobpb.Add{Topic: id, Id: id}))
	}
	require.Equal(t, "there are 4 topics with jobs, and 5 are the most: beyond that new ones are refused", r.m.LimitUses()[0].Reason())
	r.reopen()
	require.Equal(t, 4, topics())
	r.do(opDelete(byID("b")))
	require.Equal(t, 3, topics())
	require.Empty(t, r.m.LimitUses()[0].Reason())
	for _, u := range r.m.LimitUses() {
		require.Positive(t, u.Most, u.What)
	}
}
