package fsm

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
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
	r := newRig(t, Options{bounds: bounds{dueRecent: 5, dueGathered: 12}})
	st := &r.m.meta.State
	inHours := func(i int) int64 { return int64(i) * hourMS }

	r.do(addsDueIn(100, func(int) int64 { return hourMS })...)
	require.Len(t, st.RecentDue, 1)
	r.do(addsDueIn(6, inHours)...) // the first one is ready at once
	require.Len(t, st.RecentDue, 5)
	r.do(addsDueIn(7, inHours)...)
	require.Empty(t, st.RecentDue)
	require.EqualValues(t, 6, st.GatheredDue)
	r.do(addsDueIn(9, inHours)...)
	require.Empty(t, st.RecentDue)
	require.Zero(t, st.GatheredDue)
	require.Empty(t, r.m.dueChanges.gathered.Sum())
	r.check()

	r.now += 100 * hourMS
	for r.one(opAdvance(10)).More {
	}
	require.Zero(t, r.topic("t").Delayed)
}

// Changes that move on at the end of an entry are in the store when those of the next entry
// do, whatever is applied at one time: else a record that has nothing left would stay.
func TestDueCountsThatEndInOneBatchLeaveNothing(t *testing.T) {
	m, err := Open(rigDir, Options{FS: vfs.NewMem(), bounds: bounds{dueRecent: 1, dueGathered: 1}})
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
	require.NoError(t, record.Scan(m.store.db, []byte{record.SpaceDue}, []byte{record.SpaceDue + 1}, func(key, _ []byte) error {
		t.Errorf("key %x is left", key)
		return nil
	}))
}

// Check finds each way in which due counts differ from the lists: of three delayed jobs of
// topic 1 the counts of two are in records and that of the third is gathered.
func TestCheckFindsDamageToDueCounts(t *testing.T) {
	at := func(hour int64) record.TopicMinute { return record.TopicMinuteOf(1, rigStart+hour*hourMS) }
	merge := func(key []byte, counts ...record.DueCount) func(*pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Merge(key, record.AppendDueCounts(nil, counts), nil) }
	}
	dueKey := func(topic uint32) []byte { return record.AppendDueKey(nil, 0, topic) }
	all := func(m record.TopicMinute) record.TopicMinute { return record.TopicMinute(m.Minute()) }
	for name, do := range map[string]func(*pebble.Batch) error{
		"another number of jobs":            merge(dueKey(1), record.DueCount{At: at(1), Jobs: 1}),
		"a minute without jobs":             merge(dueKey(1), record.DueCount{At: at(3), Jobs: 1}),
		"a minute missing":                  merge(dueKey(1), record.DueCount{At: at(1), Jobs: -1}),
		"changes without jobs":              merge(record.KeyDueChanges, record.DueCount{At: at(9), Jobs: 1}),
		"changes of a period without jobs":  merge(record.KeyDueChanges, record.DueCount{At: at(90), Jobs: 1}),
		"record of a topic that is not":     merge(dueKey(7), record.DueCount{At: record.TopicMinuteOf(7, rigStart), Jobs: 1}),
		"minute of another topic":           merge(dueKey(1), record.DueCount{At: record.TopicMinuteOf(2, rigStart), Jobs: 1}),
		"minute of another period":          merge(dueKey(1), record.DueCount{At: at(90), Jobs: 1}),
		"record without counts":             merge(record.AppendDueKey(nil, 9, 1)),
		"too many of all topics":            merge(dueKey(record.AllTopics), record.DueCount{At: all(at(1)), Jobs: 1}),
		"period of all topics without jobs": merge(record.AppendDueKey(nil, 3, record.AllTopics), record.DueCount{At: all(at(90)), Jobs: 1}),
		"none of all topics":                func(b *pebble.Batch) error { return b.Delete(dueKey(record.AllTopics), nil) },
		"no record":                         func(b *pebble.Batch) error { return b.Delete(dueKey(1), nil) },
		"malformed key":                     func(b *pebble.Batch) error { return b.Set([]byte{record.SpaceDue, 0, 0}, nil, nil) },
		"malformed value":                   func(b *pebble.Batch) error { return b.Set(dueKey(1), []byte{0x80}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(rigDir, Options{FS: vfs.NewMem(), bounds: bounds{dueRecent: 1, dueGathered: 1}})
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			_, _, err = m.Apply([]Entry{
				{Index: 1, Term: 1, Data: encodeEntry(t, rigStart, addsDueIn(2, func(i int) int64 { return int64(i+1) * hourMS })...)},
				{Index: 2, Term: 1, Data: encodeEntry(t, rigStart, addsDueIn(1, func(int) int64 { return 5 * hourMS })...)},
			}, false)
			require.NoError(t, err)
			sound := m.View()
			require.NoError(t, check.Records(sound, nil))
			require.NoError(t, sound.Close())
			b := m.store.db.NewBatch()
			require.NoError(t, do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			v := m.View()
			require.ErrorContains(t, check.Records(v, nil), "inconsistent")
			require.NoError(t, v.Close())
		})
	}
}
