package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// The events of a topic are the differences of its totals, and the deliveries are the jobs
// that the reserves returned.
func TestEventsAreWhatHappened(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		r := newRig(t, Options{})
		var delivered, reserved, compared uint64
		for s.step = range *stepFlag {
			from := len(s.log)
			s.grow()
			before := map[string]job.TopicEvents{}
			numbers := map[string]uint32{}
			for name, topic := range r.m.topics {
				before[name], numbers[name] = topic.events(), topic.Number
			}
			results, changes, err := r.m.Apply(s.log[from:], true)
			require.NoError(t, err)
			require.Len(t, changes.Events, len(changes.Topics))
			for _, entry := range results {
				for _, result := range entry {
					reserved += uint64(len(result.Jobs))
				}
			}
			for _, effect := range changes.Effects {
				for _, result := range effect.Results {
					reserved += uint64(len(result.Jobs))
				}
			}
			for i, c := range changes.Topics {
				delivered += changes.Events[i][job.TopicDelivered]
				now := r.m.topics[c.Name]
				if was, ok := before[c.Name]; ok && now != nil && now.Number == numbers[c.Name] {
					all := now.events()
					require.Equal(t, all.Since(&was), changes.Events[i], c.Name)
					compared++
				}
			}
		}
		require.Equal(t, reserved, delivered)
		require.NotZero(t, delivered)
		require.NotZero(t, compared)
	})
}

func TestEventsOfATopicThatIsDroppedAreCounted(t *testing.T) {
	r := newRig(t, Options{})
	var entries []Entry
	for i, e := range [][]byte{
		encodeEntry(t, r.now, opAdd(&jobpb.Add{Topic: "t", Id: "a", TtrMs: 1000})),
		encodeEntry(t, r.now, opDelete(&jobpb.Ref{Id: "a"})),
		encodeEntry(t, r.now+topicKeepMS, opAdvance(10)),
		encodeEntry(t, r.now+topicKeepMS, opAdd(&jobpb.Add{Topic: "t", Id: "b", TtrMs: 1000})),
	} {
		entries = append(entries, Entry{Index: uint64(i + 1), Term: 1, Data: e})
	}
	_, changes, err := r.m.Apply(entries, false)
	require.NoError(t, err)
	require.Equal(t, []TopicChange{{Name: "t", Ready: 1}}, changes.Topics)
	require.Equal(t, []job.TopicEvents{{job.TopicAdded: 2, job.TopicDeleted: 1}}, changes.Events)
}

func TestExpiredReservationsAreReported(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "a", TtrMs: 1000, MaxAttempts: 2}))
	began := r.now
	apply := func(ops ...*jobpb.Op) []job.Timeout {
		_, changes, err := r.m.Apply([]Entry{{Index: r.m.Applied().Index + 1, Term: 1, Data: encodeEntry(t, r.now, ops...)}}, false)
		require.NoError(t, err)
		return changes.Timeouts
	}
	reserve := func() { require.Empty(t, apply(opReserve(1, "t"))) }
	reserve()
	r.now += 1500
	require.Equal(t, []job.Timeout{{Seq: 1, Generation: 1, AtMS: began + 1000, State: jobpb.State_STATE_READY}}, apply(opAdvance(10)))
	reserve()
	r.now += 1500
	require.Equal(t, []job.Timeout{{Seq: 1, Generation: 2, AtMS: began + 2500, State: jobpb.State_STATE_DEAD}}, apply(opAdvance(10)))
	require.Empty(t, apply(opAdvance(10)))
}

func TestLargestTopicsAreThoseWithTheMostJobs(t *testing.T) {
	r := newRig(t, Options{})
	for topic, jobs := range map[string]int{"three": 3, "one": 1, "five": 5, "uno": 1} {
		for range jobs {
			r.do(opAdd(&jobpb.Add{Topic: topic, TtrMs: 1000}))
		}
	}
	for range 9 {
		r.do(opAdd(&jobpb.Add{Topic: "gone", Id: "a", TtrMs: 1000}), opDelete(&jobpb.Ref{Id: "a"}))
	}
	for _, c := range []struct {
		n    int
		want []string
	}{
		{0, nil}, {1, []string{"five"}}, {4, []string{"five", "three", "one", "uno"}}, {9, []string{"five", "three", "one", "uno", "gone"}},
	} {
		v := r.m.View()
		names, err := v.LargestTopics(c.n)
		require.NoError(t, err)
		require.NoError(t, v.Close())
		require.Equal(t, c.want, names)
	}
}
