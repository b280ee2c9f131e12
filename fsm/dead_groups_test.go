package fsm

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// buries adds n jobs to each topic and buries them with the reason of their number.
func (r *rig) buries(n int, reason func(i int) string, topics ...string) {
	r.t.Helper()
	for _, topic := range topics {
		var adds, buries []*jobpb.Op
		for i := range n {
			adds = append(adds, opAdd(&jobpb.Add{Topic: topic, Id: fmt.Sprintf("%s-%d", topic, i)}))
			buries = append(buries, opBury(&jobpb.Bury{Ref: &jobpb.Ref{Id: fmt.Sprintf("%s-%d", topic, i), Generation: 1}, Reason: reason(i)}))
		}
		r.do(append(adds, opReserve(uint32(n), topic))...)
		r.do(buries...)
	}
}

// Jobs that died and left again are not left anywhere, and those of a topic that never had
// dead jobs have nothing there.
func TestJobsThatAreNotDeadLeaveNothingInGroups(t *testing.T) {
	r := newRig(t, Options{})
	r.buries(3, func(i int) string { return fmt.Sprint(i % 2) }, "t", "u")
	r.do(opAdd(&jobpb.Add{Topic: "other"}), opKick(&jobpb.Ref{Id: "t-0"}), opDelete(&jobpb.Ref{Id: "t-1"}))
	r.do(opKick(&jobpb.Ref{Id: "t-2"}), opMove(&jobpb.MoveJobs{Topic: "u", To: "w", Max: 10}))
	r.do(&jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{Topic: "w", State: jobpb.State_STATE_DEAD, Max: 10, Sweep: &jobpb.Sweep{Scan: 10}}}})
	require.NoError(t, record.Scan(r.m.store.db, []byte{record.SpaceDead}, []byte{record.SpaceDead + 1}, func(key, _ []byte) error {
		t.Errorf("key %q is left", key)
		return nil
	}))
	require.Zero(t, r.m.meta.State.DeadReasons)
}

// A listing by exact reason reads only the jobs that it shows, page by page.
func TestAListingByExactReasonExaminesOnlyThese(t *testing.T) {
	r := newRig(t, Options{})
	r.buries(100, func(i int) string { return fmt.Sprint(i % 10) }, "t")
	v := r.m.View()
	defer func() { require.NoError(t, v.Close()) }()
	q := &jobpb.JobQuery{Topic: "t", State: jobpb.State_STATE_DEAD, Max: 4, Filter: &jobpb.Filter{ExactReason: new("7")}}
	var ids []string
	for {
		page, err := v.Jobs(q)
		require.NoError(t, err)
		for _, j := range page.Jobs {
			ids = append(ids, j.Id)
		}
		if q.After = page.Next; q.After == nil {
			break
		}
	}
	require.Equal(t, []string{"t-7", "t-17", "t-27", "t-37", "t-47", "t-57", "t-67", "t-77", "t-87", "t-97"}, ids)
	require.EqualValues(t, 10, v.Examined())

	q.State, q.Max = jobpb.State_STATE_NONE, 100
	page, err := v.Jobs(q)
	require.NoError(t, err)
	require.Len(t, page.Jobs, 10, "in all states together")
}

// With more reasons than a read examines, it finds the largest groups, and says which it may
// have missed.
func TestTheLargestOfVeryManyGroupsAreFound(t *testing.T) {
	r := newRig(t, Options{})
	const one = job.MaxDeadScan / 10
	for n := range 11 { // each a reason of its own, in one topic
		r.buries(one, func(i int) string { return fmt.Sprintf("%d of %d", i, n) }, fmt.Sprint("t", n))
	}
	r.buries(3, func(int) string { return "refused" }, "u", "v")
	r.buries(5, func(int) string { return "timeout" }, "w")
	v := r.m.View()
	defer func() { require.NoError(t, v.Close()) }()

	a, err := v.DeadReasons(&jobpb.DeadReasonsQuery{Max: 2})
	require.NoError(t, err)
	require.EqualValues(t, 11*one+2, a.Reasons)
	require.EqualValues(t, 11*one+11, a.Jobs)
	require.True(t, a.More)
	require.False(t, a.Incomplete, "all others are smaller")
	require.Equal(t, "refused", a.Groups[0].Reason)
	require.EqualValues(t, 6, a.Groups[0].Jobs)
	require.EqualValues(t, 2, a.Groups[0].Topics)
	require.Equal(t, "timeout", a.Groups[1].Reason)

	a, err = v.DeadReasons(&jobpb.DeadReasonsQuery{Max: 3})
	require.NoError(t, err)
	require.True(t, a.Incomplete, "there are too many with one job")
	require.EqualValues(t, 1, a.Groups[2].Jobs)

	a, err = v.DeadReasons(&jobpb.DeadReasonsQuery{Topic: "t3", Max: 1000})
	require.NoError(t, err)
	require.Equal(t, one == 1000, !a.More)
	require.False(t, a.Incomplete)
	require.Len(t, a.Groups, 1000)
}

// Check finds each way in which groups differ from the dead jobs: topic 1 has two, of the
// reasons x and y, and topic 2 has one of the reason x.
func TestCheckFindsDamageToDeadGroups(t *testing.T) {
	x, y := record.DeadGroup{Topic: 1, Reason: "x"}, record.DeadGroup{Topic: 1, Reason: "y"}
	set := func(key, value []byte) func(*pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Set(key, value, nil) }
	}
	remove := func(key []byte) func(*pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Delete(key, nil) }
	}
	count := func(jobs, topics uint64) []byte { return record.DeadCount{Jobs: jobs, Topics: topics}.Append(nil) }
	for name, do := range map[string]func(*pebble.Batch) error{
		"a job that is in no group":   remove(x.AppendJobKey(nil, record.Place{Seq: 1})),
		"a job that is not dead":      set(x.AppendJobKey(nil, record.Place{Instant: 9, Seq: 9}), nil),
		"a job in a second group":     set(record.DeadGroup{Topic: 1, Reason: "z"}.AppendJobKey(nil, record.Place{Seq: 1}), nil),
		"another number of jobs":      set(x.AppendCountKey(nil), count(2, 0)),
		"a count of topics":           set(x.AppendCountKey(nil), count(1, 1)),
		"no count":                    remove(y.AppendCountKey(nil)),
		"a count without jobs":        set(record.DeadGroup{Topic: 7, Reason: "x"}.AppendCountKey(nil), count(1, 0)),
		"too many of all topics":      set(record.DeadGroup{Topic: record.AllTopics, Reason: "x"}.AppendCountKey(nil), count(3, 2)),
		"too many topics":             set(record.DeadGroup{Topic: record.AllTopics, Reason: "x"}.AppendCountKey(nil), count(2, 3)),
		"none of all topics":          remove(record.DeadGroup{Topic: record.AllTopics, Reason: "y"}.AppendCountKey(nil)),
		"a reason that no job has":    set(record.DeadGroup{Topic: record.AllTopics, Reason: "z"}.AppendCountKey(nil), count(1, 1)),
		"not listed by size":          remove(x.AppendSizeKey(nil, record.DeadCount{Jobs: 1}.Size())),
		"listed with another size":    set(x.AppendSizeKey(nil, record.DeadCount{Jobs: 2}.Size()), nil),
		"malformed key":               set([]byte{record.SpaceDead, record.DeadJobs, 0}, nil),
		"malformed count":             set(x.AppendCountKey(nil), []byte{1}),
		"a reason that is too long":   set([]byte{record.SpaceDead, record.DeadCounts, 255}, count(1, 1)),
		"a part that is not known":    set([]byte{record.SpaceDead, 'z'}, nil),
		"the end of a key is missing": set(x.AppendSizeKey(nil, 63)[:8], nil),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(rigDir, Options{FS: vfs.NewMem()})
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			bury := func(seq uint64, reason string) *jobpb.Op {
				return opBury(&jobpb.Bury{Ref: fenced(seq, 1), Reason: reason})
			}
			_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: encodeEntry(t, rigStart,
				opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "u"}),
				opReserve(3, "t", "u"), bury(1, "x"), bury(2, "y"), bury(3, "x"))}}, false)
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
