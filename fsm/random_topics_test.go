package fsm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// topicFacts is what decides on later results and no reader sees: when a topic needs an
// Advance, and the order among those that do; how many jobs each list has; what is indexed.
type topicFacts struct {
	number     uint32
	next       int64 // 0: never
	rank       uint64
	counts     [record.ListCount]uint64
	emptySince int64        // 0 while it has jobs
	indexed    record.Place // ExpiryIndexed while jobs are ready
}

// facts returns the facts of the model's topics.
func (m *model) facts() map[string]topicFacts {
	counts, ready := map[string][record.ListCount]uint64{}, map[string]bool{}
	for _, j := range m.jobs {
		c := counts[j.Topic]
		list := record.ListOfState(j.State)
		c[list]++
		ready[j.Topic] = ready[j.Topic] || list == record.ListReady
		if list == record.ListReady && m.covers(j) {
			c[record.ListExpiring]++
		}
		if list.Waits() && j.expiresOwn != 0 {
			c[record.ListDeadline]++
		}
		counts[j.Topic] = c
	}
	all := map[string]topicFacts{}
	for name, t := range m.topics {
		f := topicFacts{number: t.number, next: m.nextInstant(t), rank: t.deaths, counts: counts[name]}
		if counts[name] == ([record.ListCount]uint64{}) {
			f.emptySince = t.emptySince
		}
		if ready[name] {
			f.indexed = record.PlaceOf(t.covered)
		}
		all[name] = f
	}
	return all
}

// compareTopics compares the facts of a machine's topics with the model's after an entry.
func (s *simulation) compareTopics(r *replica, entry int) {
	got := map[string]topicFacts{}
	for name, t := range r.m.topics {
		f := topicFacts{number: t.Number, next: t.next, rank: t.Rank, counts: t.Counts}
		if t.Jobs() == 0 {
			f.emptySince = t.EmptySince
		}
		if t.Counts[record.ListReady] > 0 {
			f.indexed = t.ExpiryIndexed
		}
		got[name] = f
	}
	require.Len(s.t, got, len(s.facts[entry]), "topics after entry %d of %s", entry, r.name)
	for name, want := range s.facts[entry] {
		require.Equal(s.t, want, got[name], "topic %s after entry %d of %s", name, entry, r.name)
	}
}

// The first step of an Advance continues a reset of the clock. A topic whose job it changes
// has the tokens of that instant, so it is not due for one, and its share of the Advance goes
// to the others.
func TestAJobThatIsSetBackFillsItsTopicsBucket(t *testing.T) {
	s := newSimulation(t, 1)
	r := s.replica("the machine", Options{})
	add := func(topic string, delay int64) *jobpb.Op { return opAdd(&jobpb.Add{Topic: topic, DelayMs: delay}) }
	for _, e := range []struct {
		now   int64
		epoch uint64
		ops   []*jobpb.Op
	}{
		{1_000_000, 0, []*jobpb.Op{
			opSettings(&jobpb.SetTopic{Topic: "limited", Settings: &jobpb.TopicSettings{RateMilli: 1000, Burst: 1}}),
			add("limited", 0), add("limited", 0), add("limited", 0), opReserve(1, "limited"),
		}},
		{1_000_000, 0, []*jobpb.Op{{Kind: &jobpb.Op_ResetClock{ResetClock: &jobpb.ResetClock{ToMs: 990_000}}}}},
		{990_000, 1, []*jobpb.Op{add("a", 1500), add("b", 1500)}},
		{992_000, 1, []*jobpb.Op{opAdvance(2)}}, // after the token, which nobody needs any more
	} {
		s.entry(e.now, e.epoch, slices.Values(e.ops))
		s.applyLog(r, 1000)
	}
	last := s.want[len(s.want)-1][0]
	require.EqualValues(t, 2, last.Count, "the jobs of both other topics fell due")
	require.True(t, last.More, "the reset has not come to all jobs")
	s.compare(r.rig)
}
