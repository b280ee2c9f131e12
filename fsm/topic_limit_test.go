package fsm

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// topicsAtLimit drops the topic that has been idle for longest if there are too many.
func (m *model) topicsAtLimit() bool {
	var oldest *modelTopic
	for _, t := range m.topics {
		full := t.limit == nil || t.limit.when(t.limit.burst*1_000_000) <= m.clock
		if slices.ContainsFunc(m.all(), func(j *modelJob) bool { return j.Topic == t.Name }) || t.PausedUntilMs != 0 || !full {
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
	r := newRig(t, Options{maxTopics: 3})
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
