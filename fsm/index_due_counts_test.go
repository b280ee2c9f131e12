package fsm

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// addsDueIn returns adds to topic "t", the first due in the first duration, and so on.
func addsDueIn(n int, delay func(i int) int64) []*jobpb.Op {
	ops := make([]*jobpb.Op, n)
	for i := range ops {
		ops[i] = opAdd(&jobpb.Add{Topic: "t", DelayMs: delay(i)})
	}
	return ops
}

// Changes of one minute are one in an entry. Few are in the state record, more in a value of
// their own, and many move on to the records.
func TestDueChangesAreGathered(t *testing.T) {
	r := newRig(t, Options{dueRecent: 5, dueGathered: 12})
	st := &r.m.meta.state
	inHours := func(i int) int64 { return int64(i) * hourMS }

	r.do(addsDueIn(100, func(int) int64 { return hourMS })...)
	require.Len(t, st.recentDue, 1)
	r.do(addsDueIn(6, inHours)...) // the first one is ready at once
	require.Len(t, st.recentDue, 5)
	r.do(addsDueIn(7, inHours)...)
	require.Empty(t, st.recentDue)
	require.EqualValues(t, 6, st.gatheredDue)
	r.do(addsDueIn(9, inHours)...)
	require.Empty(t, st.recentDue)
	require.Zero(t, st.gatheredDue)
	require.Empty(t, r.m.dueChanges.gathered.sum())
	r.check()

	r.now += 100 * hourMS
	for r.one(opAdvance(10)).More {
	}
	require.Zero(t, r.topic("t").Delayed)
}

// Changes that move on at the end of an entry are in the store when those of the next entry
// do, whatever is applied at one time: else a record that has nothing left would stay.
func TestDueCountsThatEndInOneBatchLeaveNothing(t *testing.T) {
	m, err := Open(rigDir, Options{FS: vfs.NewMem(), dueRecent: 1, dueGathered: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	entry := func(index uint64, ops ...*jobpb.Op) Entry {
		return Entry{Index: index, Term: 1, Data: encodeEntry(t, rigStart, ops...)}
	}
	_, _, err = m.Apply([]Entry{
		entry(1, addsDueIn(2, func(i int) int64 { return int64(i+1) * hourMS })...), // two changes are too many
		entry(2, opDelete(bySeq(1)), opDelete(bySeq(2))),
	}, true)
	require.NoError(t, err)
	require.NoError(t, scan(m.store.db, []byte{spaceDue}, []byte{spaceDue + 1}, func(key, _ []byte) error {
		t.Errorf("key %x is left", key)
		return nil
	}))
}

// Check finds each way in which due counts differ from the lists: of three delayed jobs of
// topic 1 the counts of two are in records and that of the third is gathered.
func TestCheckFindsDamageToDueCounts(t *testing.T) {
	at := func(hour int64) topicMinute { return topicMinuteOf(1, rigStart+hour*hourMS) }
	merge := func(key []byte, counts ...dueCount) func(*pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Merge(key, appendDueCounts(nil, counts), nil) }
	}
	record := func(topic uint32) []byte { return appendDueKey(nil, 0, topic) }
	all := func(m topicMinute) topicMinute { return topicMinute(m.minute()) }
	for name, do := range map[string]func(*pebble.Batch) error{
		"another number of jobs":            merge(record(1), dueCount{at(1), 1}),
		"a minute without jobs":             merge(record(1), dueCount{at(3), 1}),
		"a minute missing":                  merge(record(1), dueCount{at(1), -1}),
		"changes without jobs":              merge(keyDueChanges, dueCount{at(9), 1}),
		"changes of a period without jobs":  merge(keyDueChanges, dueCount{at(90), 1}),
		"record of a topic that is not":     merge(record(7), dueCount{topicMinuteOf(7, rigStart), 1}),
		"minute of another topic":           merge(record(1), dueCount{topicMinuteOf(2, rigStart), 1}),
		"minute of another period":          merge(record(1), dueCount{at(90), 1}),
		"record without counts":             merge(appendDueKey(nil, 9, 1)),
		"too many of all topics":            merge(record(allTopics), dueCount{all(at(1)), 1}),
		"period of all topics without jobs": merge(appendDueKey(nil, 3, allTopics), dueCount{all(at(90)), 1}),
		"none of all topics":                func(b *pebble.Batch) error { return b.Delete(record(allTopics), nil) },
		"no record":                         func(b *pebble.Batch) error { return b.Delete(record(1), nil) },
		"malformed key":                     func(b *pebble.Batch) error { return b.Set([]byte{spaceDue, 0, 0}, nil, nil) },
		"malformed value":                   func(b *pebble.Batch) error { return b.Set(record(1), []byte{0x80}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(rigDir, Options{FS: vfs.NewMem(), dueRecent: 1, dueGathered: 1})
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			_, _, err = m.Apply([]Entry{
				{Index: 1, Term: 1, Data: encodeEntry(t, rigStart, addsDueIn(2, func(i int) int64 { return int64(i+1) * hourMS })...)},
				{Index: 2, Term: 1, Data: encodeEntry(t, rigStart, addsDueIn(1, func(int) int64 { return 5 * hourMS })...)},
			}, false)
			require.NoError(t, err)
			sound := m.View()
			require.NoError(t, sound.Check())
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, v.Check(), "inconsistent")
			require.NoError(t, v.Close())
		})
	}
}
