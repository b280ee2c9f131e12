package fsm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/fsm/view"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func TestApplySkipsWhatIsApplied(t *testing.T) {
	r := newRig(t, Options{})
	e := Entry{Index: 7, Term: 2, Data: encodeEntry(t, r.now, opAdd(&jobpb.Add{Topic: "t"}))}
	results, changes, err := r.m.Apply([]Entry{e, e}, true)
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Len(t, results[0], 1)
	require.Nil(t, results[1])
	require.Equal(t, []TopicChange{{Name: "t", Ready: 1}}, changes.Topics)

	require.NoError(t, r.m.MarkDurable(9, 3, []byte("conf"), 8))
	for index := range uint64(10) {
		e.Index = index
		results, changes, err = r.m.Apply([]Entry{e}, true)
		require.NoError(t, err)
		require.Nil(t, results[0], "entry %d", index)
		require.Empty(t, changes.Topics)
	}
	require.EqualValues(t, 1, r.topic("t").Added)
}

func TestApplyWithoutReplies(t *testing.T) {
	with, without := newRig(t, Options{}), newRig(t, Options{})
	entries := []Entry{
		{Index: 1, Term: 1, Data: encodeEntry(t, rigStart, opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opReserve(3, "t"), opFinish(byID("nobody")))},
		{Index: 2, Term: 1, Data: encodeEntry(t, rigStart+5, opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opKickTopic("t", 3), opAdvance(4))},
	}
	results, _, err := with.m.Apply(entries, true)
	require.NoError(t, err)
	require.Len(t, results, 2)
	results, changes, err := without.m.Apply(entries, false)
	require.NoError(t, err)
	require.Nil(t, results)
	require.Len(t, changes.Topics, 1)
	require.Equal(t, with.digest(), without.digest())
}

func TestRepliesOwnTheirBodies(t *testing.T) {
	r := newRig(t, Options{})
	data := encodeEntry(t, r.now, opAdd(&jobpb.Add{Topic: "t", Body: []byte("body")}), opReserve(1, "t"))
	r.index = 1
	results, _, err := r.m.Apply([]Entry{{Index: 1, Term: 1, Data: data}}, true)
	require.NoError(t, err)
	clear(data)
	require.Equal(t, "body", string(results[0][1].Jobs[0].Body))
}

func TestUnknownEntriesStopTheMachine(t *testing.T) {
	var unknownOp []byte
	unknownOp = binary.AppendUvarint(unknownOp, 1000<<3|2) // field 1000 of Op
	unknownOp = append(unknownOp, 0)
	framed := append(oplog.AppendEntryHeader(nil, rigStart), 2<<3|2, byte(len(unknownOp)))
	cases := []struct {
		name, says string
		data       []byte
	}{
		{"version", "upgrade this node", []byte{99, 1, 2}},
		{"cluster version", "start a newer release", encodeEntry(t, rigStart, opRaise(job.MaxVersion+1))},
		{"operation", "upgrade this node", append(framed, unknownOp...)},
		{"nonsense", "does not decode", []byte{oplog.EntryVersion, 0xff}},
		{"nothing", "empty", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.one(opAdd(&jobpb.Add{Topic: "t"}))
			before := r.digest()
			good := encodeEntry(t, rigStart, opAdd(&jobpb.Add{Topic: "t"}))
			_, _, err := r.m.Apply([]Entry{{Index: 2, Term: 1, Data: good}, {Index: 3, Term: 1, Data: c.data}}, true)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "log entry 3")
			_, _, again := r.m.Apply([]Entry{{Index: 4, Term: 1, Data: good}}, true)
			require.Equal(t, err, again)
			require.Equal(t, before, r.digest(), "nothing of the batch is applied")
			r.reopen()
			require.EqualValues(t, 1, r.m.Applied().Index)
		})
	}
}

func TestMarkSeesTheStateAtItsEntry(t *testing.T) {
	r, twin := newRig(t, Options{}), newRig(t, Options{})
	add := func() *jobpb.Op { return opAdd(&jobpb.Add{Topic: "t"}) }
	entries := []Entry{
		{Index: 4, Term: 1, Data: encodeEntry(t, r.now, add())},
		{Index: 5, Term: 1, Data: encodeEntry(t, r.now, add(), opMark("one"), add())},
		{Index: 6, Term: 1, Data: encodeEntry(t, r.now, add())},
		{Index: 9, Term: 1, Data: encodeEntry(t, r.now, opMark("two"))},
		{Index: 10, Term: 1, Data: encodeEntry(t, r.now, add())},
	}
	_, changes, err := r.m.Apply(entries, true)
	require.NoError(t, err)
	require.Len(t, changes.Marks, 2)
	require.Equal(t, []TopicChange{{Name: "t", Ready: 5}}, changes.Topics, "one change, the last")
	for i, e := range entries {
		_, one, err := twin.m.Apply([]Entry{e}, false)
		require.NoError(t, err)
		for _, p := range one.Marks {
			mine := changes.Marks[0]
			changes.Marks = changes.Marks[1:]
			require.Equal(t, p.Name, mine.Name)
			require.Equal(t, e.Index, mine.Index)
			require.Equal(t, e.Index, p.Index)
			applied, err := mine.View.Applied()
			require.NoError(t, err)
			require.Equal(t, e.Index, applied.Index)
			want, err := check.Digest(p.View, nil)
			require.NoError(t, err)
			got, err := check.Digest(mine.View, nil)
			require.NoError(t, err)
			require.Equal(t, want, got, "entry %d", i)
			require.NoError(t, p.View.Close())
			require.NoError(t, mine.View.Close())
		}
	}
	require.Empty(t, changes.Marks)
}

func TestLargeApplyIsCommittedInParts(t *testing.T) {
	r, twin := newRig(t, Options{MemTableBytes: 32 << 20}), newRig(t, Options{MemTableBytes: 32 << 20})
	var entries []Entry
	for i := range uint64(6) {
		body := make([]byte, commitBytes/3)
		entries = append(entries, Entry{Index: i + 1, Term: 1, Data: encodeEntry(t, r.now, opAdd(&jobpb.Add{Topic: "t", Body: body}))})
	}
	_, changes, err := r.m.Apply(entries, true)
	require.NoError(t, err)
	require.Equal(t, []TopicChange{{Name: "t", Ready: 6}}, changes.Topics)
	for _, e := range entries {
		_, _, err := twin.m.Apply([]Entry{e}, false)
		require.NoError(t, err)
	}
	require.Equal(t, twin.digest(), r.digest())
}

func TestConfigurationIsStoredWithTheState(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, Applied{}, r.m.Applied())
	_, _, err := r.m.Apply([]Entry{{Index: 3, Term: 2, Data: []byte("three nodes"), Configuration: true}}, true)
	require.NoError(t, err)
	r.reopen()
	want := Applied{Index: 3, Term: 2, Configuration: []byte("three nodes"), ConfigurationIndex: 3}
	require.Equal(t, want, r.m.Applied())
	v := r.m.View()
	defer v.Close()
	got, err := v.Applied()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestDurableMarkNeverMovesBack(t *testing.T) {
	r := newRig(t, Options{FS: vfs.NewCrashableMem()})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	steps := []struct {
		index, term   uint64
		configuration string
		confIndex     uint64
		want          Applied
	}{
		{10, 2, "a", 4, Applied{Index: 10, Term: 2, Configuration: []byte("a"), ConfigurationIndex: 4}},
		{8, 1, "older", 3, Applied{Index: 10, Term: 2, Configuration: []byte("a"), ConfigurationIndex: 4}},
		{10, 2, "b", 9, Applied{Index: 10, Term: 2, Configuration: []byte("b"), ConfigurationIndex: 9}},
	}
	for _, s := range steps {
		require.NoError(t, r.m.MarkDurable(s.index, s.term, []byte(s.configuration), s.confIndex))
		s.want.ClockMS = rigStart
		require.Equal(t, s.want, r.m.Applied())

		// A durable mark survives a power failure, with the state that it covers.
		r.fs = r.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
		require.NoError(t, r.m.Close())
		r.o.FS = r.fs
		r.open()
		require.Equal(t, s.want, r.m.Applied())
		require.EqualValues(t, 1, r.topic("t").Ready)
	}
}

func TestDigestIgnoresWhatDiffersBetweenNodes(t *testing.T) {
	r, other := newRig(t, Options{}), newRig(t, Options{})
	require.Equal(t, r.digest(), other.digest(), "fresh")
	for _, m := range []*rig{r, other} {
		m.do(opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opSetCluster("c"))
	}
	require.NoError(t, other.m.MarkDurable(50, 2, []byte("conf"), 50))
	require.NoError(t, other.m.store.db.Flush())
	require.Equal(t, r.digest(), other.digest())
}

func TestDigestNoticesEveryDifference(t *testing.T) {
	changes := map[string][]*jobpb.Op{
		"another job":      {opAdd(&jobpb.Add{Topic: "t"})},
		"a state":          {opReserve(1, "t")},
		"a status":         {opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1), Undelivered: true})},
		"a body":           {opDelete(byID("x")), opAdd(&jobpb.Add{Topic: "t", Id: "x", Body: []byte("z")})},
		"totals":           {opAdd(&jobpb.Add{Topic: "t"}), opDelete(bySeq(2))},
		"a forgotten node": {opForget("n")},
		"a removed node":   {opRemove("n", "n")},
		"an invitation":    {opInvite("i", "", 1000)},
		"the admission":    {opAdmission(jobpb.AdmissionMode_ADMISSION_INVITED)},
		"the cluster":      {opSetCluster("c")},
	}
	seen := map[string]string{}
	for name, ops := range changes {
		r := newRig(t, Options{})
		r.one(opAdd(&jobpb.Add{Topic: "t", Id: "x"}))
		seen[r.digest()] = "nothing"
		r.do(ops...)
		d := r.digest()
		require.Empty(t, seen[d], "%s", name)
		seen[d] = name
	}
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t", Id: "x"}))
	r.now++
	r.do()
	require.Empty(t, seen[r.digest()], "the clock alone")
}

func TestViewDoesNotChange(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t", Id: "x", Body: []byte("b"), BodyKind: jobpb.BodyKind_BODY_JSON}))
	v := r.m.View()
	before, err := check.Digest(v, nil)
	require.NoError(t, err)
	r.do(opReserve(1, "t"), opFinish(byID("x")))
	after, err := check.Digest(v, nil)
	require.NoError(t, err)
	require.Equal(t, before, after)
	j, found, err := v.Job("x")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "b", string(j.Body))
	require.NoError(t, v.Close())
	require.NoError(t, v.Close(), "closing again does nothing")
	_, _, err = v.Job("x")
	require.ErrorIs(t, err, view.ErrEnded)
}

func TestCloseEndsViewsAndEverythingElse(t *testing.T) {
	m, err := Open(rigDir, Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	v := m.View()
	require.NotNil(t, m.Metrics())
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.ErrorIs(t, check.Records(v, nil), view.ErrEnded)
	require.NoError(t, v.Close())
	late := m.View()
	require.ErrorIs(t, check.Records(late, nil), view.ErrEnded)
	require.NoError(t, late.Close())
	require.Nil(t, m.Metrics())
	require.ErrorIs(t, m.MarkDurable(1, 1, nil, 0), errClosed)
	_, _, err = m.Apply(nil, true)
	require.ErrorIs(t, err, errClosed)
}

func TestWindowsShareABudget(t *testing.T) {
	const topics, budget = 6, 400
	r := newRig(t, Options{bounds: bounds{windowBudget: budget}})
	for i := range topics {
		name := fmt.Sprintf("t%d", i)
		var ops []*jobpb.Op
		for k := range 400 {
			ops = append(ops, opAdd(&jobpb.Add{Topic: name, DelayMs: int64(max(0, k-300))}))
		}
		ops = append(ops, opReserve(200, name))
		for k := range 100 {
			ops = append(ops, opBury(&jobpb.Bury{Ref: bySeq(uint64(400*i + k + 1))}))
		}
		r.do(ops...)
		require.NoError(t, checkMemory(r.m))
		require.LessOrEqual(t, r.m.held, budget)
		require.NotZero(t, r.m.held)
	}
	r.now += 100_000
	require.EqualValues(t, topics*(99+100), r.one(opAdvance(10_000)).Count)
	require.NoError(t, checkMemory(r.m))
	require.LessOrEqual(t, r.m.held, budget)
}

func TestHeadsSurviveARestart(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 10 {
		r.do(opAdd(&jobpb.Add{Topic: "t", DelayMs: int64(i) * 5}))
	}
	r.now += 20
	r.do(opAdvance(2), opReserve(2, "t"), opFinish(bySeq(1)))
	due := r.m.NextDue()
	r.reopen()
	require.Equal(t, due, r.m.NextDue())
	for s, head := range r.m.topics["t"].Heads {
		w := &r.m.topics["t"].windows[s]
		if r.m.topics["t"].Counts[s] == 0 {
			require.True(t, w.Covers(record.Everything))
			continue
		}
		require.False(t, w.Covers(head), "the head of %s", record.List(s))
		head.Seq--
		require.True(t, w.Covers(head), "nothing is before the head of %s", record.List(s))
		require.Zero(t, w.Len(), "nothing is read before it is needed")
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	keys := map[string][]byte{
		"store": record.KeyState,
		"topic": record.AppendNameKey(nil, record.SpaceTopic, "t"),
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			o := Options{FS: vfs.NewMem()}
			m, err := Open(rigDir, o)
			require.NoError(t, err)
			_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: encodeEntry(t, 1, opAdd(&jobpb.Add{Topic: "t"}))}}, false)
			require.NoError(t, err)
			require.NoError(t, m.store.db.Set(key, []byte{99}, pebble.NoSync))
			require.NoError(t, m.Close())
			_, err = Open(rigDir, o)
			require.ErrorContains(t, err, "format version 99")
			require.ErrorContains(t, err, "another release")
		})
	}
}

func TestFailedDiskCallsOnFatal(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.ErrInjected.If(errorfs.And(errorfs.Writes, errorfs.PathMatch("*/*/*.sst")))}
	var failed atomic.Pointer[error]
	m, err := Open(rigDir, Options{
		FS:      errorfs.Wrap(vfs.NewMem(), toggle),
		OnFatal: func(err error) { failed.Store(&err) },
	})
	require.NoError(t, err)
	_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: encodeEntry(t, 1, opAdd(&jobpb.Add{Topic: "t"}))}}, false)
	require.NoError(t, err)
	toggle.On()
	_, err = m.store.db.AsyncFlush()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return failed.Load() != nil }, 30*time.Second, time.Millisecond)
	require.ErrorContains(t, *failed.Load(), "injected error")
	toggle.Off()
	require.ErrorContains(t, m.Close(), "it has failed", "not all that was applied may be on disk")
}

func TestFullDiskCallsOnFatal(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})}
	var failed atomic.Pointer[error]
	m, err := Open(rigDir, Options{FS: errorfs.Wrap(vfs.NewMem(), toggle), OnFatal: func(err error) {
		failed.Store(&err)
		toggle.Off() // the process would have ended
	}})
	require.NoError(t, err)
	toggle.On()
	body := make([]byte, 256<<10)
	for i := uint64(1); failed.Load() == nil && i < 1000; i++ {
		_, _, err = m.Apply([]Entry{{Index: i, Term: 1, Data: encodeEntry(t, 1, opAdd(&jobpb.Add{Topic: "t", Body: body}))}}, false)
		require.NoError(t, err)
	}
	require.NotNil(t, failed.Load())
	require.ErrorContains(t, *failed.Load(), "no space left on device")
	require.ErrorContains(t, m.Close(), "it has failed")
}

func TestMachineFindsDamageInItsLists(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	key := record.AppendSeqKey(nil, record.SpaceSpec, 1)
	value, closer, err := r.m.store.db.Get(key)
	require.NoError(t, err)
	saved := append([]byte(nil), value...)
	require.NoError(t, closer.Close())
	require.NoError(t, r.m.store.db.Delete(key, pebble.NoSync))
	r.reopen()
	_, _, err = r.m.Apply([]Entry{{Index: 2, Term: 1, Data: encodeEntry(t, r.now, opReserve(1, "t"))}}, true)
	require.ErrorContains(t, err, `topic "t" lists job 1 in ready, but the job does not exist`)
	require.NoError(t, r.m.store.db.Set(key, saved, pebble.NoSync))
	r.reopen()
}

// The dispatcher serves a waiter for each job that falls due, so it needs all of them, and
// none that cannot be handed out then.
func TestChangesHaveTheNextDueInstants(t *testing.T) {
	r := newRig(t, Options{})
	soon := func(replies bool, ops ...*jobpb.Op) []int64 {
		r.index++
		_, changes, err := r.m.Apply([]Entry{{Index: r.index, Term: 1, Data: encodeEntry(t, r.now, ops...)}}, replies)
		require.NoError(t, err)
		require.Len(t, changes.Topics, 1)
		return changes.Topics[0].Soon
	}
	in := func(ms int64) *jobpb.Op { return opAdd(&jobpb.Add{Topic: "t", DelayMs: ms}) }
	require.Equal(t, []int64{r.now + 5, r.now + 5, r.now + 9}, soon(true, in(9), in(5), in(5)))
	require.Empty(t, soon(false, in(7)), "a follower does not need it")
	require.Empty(t, soon(true, opPause("t", 5000, false)))
	require.Len(t, soon(true, opPause("t", 0, false)), 4)
	for range soonMax {
		r.one(in(50))
	}
	require.Len(t, soon(true, in(6)), soonMax)
	require.Empty(t, soon(true, opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{RateMilli: 1000}})))
}

// A node that does not know its cluster may join another one, so it must know it from when it
// says so, whatever happens.
func TestAClustersIDOutlivesAPowerFailure(t *testing.T) {
	r := newRig(t, Options{FS: vfs.NewCrashableMem()})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	crashed := func() *Machine {
		m, err := Open(rigDir, Options{FS: r.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		return m
	}
	require.Zero(t, crashed().Applied().Index, "an add alone is not flushed")
	r.one(opSetCluster("c"))
	require.Equal(t, "c", r.m.ClusterID())
	require.Equal(t, "c", crashed().ClusterID())
	require.Equal(t, r.index, crashed().Applied().Index)
}
