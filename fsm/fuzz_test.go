package fsm

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Any entry is applied whole or refused, and the state stays consistent.
func FuzzApply(f *testing.F) {
	seed := func(ops ...*jobpb.Op) { f.Add(encodeEntry(f, rigStart, ops...)) }
	seed(opAdd(&jobpb.Add{Id: "x", Topic: "t", Body: []byte("b")}), opReserve(1, "t"), opTouch(bySeq(1), 5), opFinish(byID("x")))
	seed(opAdd(&jobpb.Add{Topic: "t", DelayMs: 5}), opKick(bySeq(1)), opAdvance(3), opKickTopic("t", 1), opMark("m"))
	seed(
		opReserveJob(bySeq(2), 5), opRelease(&jobpb.Release{Ref: bySeq(2), Returned: true}), opPause("t", 5, false),
		opPause("u", 0, true),
		&jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", Endless: true}}},
		opDeleteSparing(bySeq(1)), opKickTopicOrDelayed("t", 2),
	)
	seed(
		opRetain("t", 5), opFinish(bySeq(1)),
		opAdd(&jobpb.Add{Id: "x", Topic: "t", IfExists: jobpb.IfExists_IF_EXISTS_POSTPONE}), opDelete(byID("x")),
		opAdvance(2),
	)
	seed(
		opRelease(&jobpb.Release{Ref: bySeq(1), Undelivered: true}), opBury(&jobpb.Bury{Ref: fenced(1, 1)}),
		opSetCluster("c"), opRemove("n.a", "n"), opAdmit("n"),
	)
	seed(
		opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{ExpireMs: 1, SpreadMs: 5}}),
		opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t", DelayMs: 3}), opAdvance(9),
	)
	seed(
		opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{MaxPending: new(uint64(2))}}),
		opAdd(&jobpb.Add{Topic: "t"}), opSettings(&jobpb.SetTopic{Topic: "u", IfRevision: new(uint64(0))}),
	)
	seed(
		opPut("s", everySchedule("{{run}}")), opFire(&jobpb.FireSchedule{Name: "s", Revision: 3, NextMs: rigStart}),
		opFire(&jobpb.FireSchedule{Name: "s", Revision: 3, ExpectNextMs: rigStart, Runs: []*jobpb.ScheduledRun{{PlannedMs: rigStart}}}),
		opFire(&jobpb.FireSchedule{Name: "s", Now: true, Runs: []*jobpb.ScheduledRun{{PlannedMs: 1}}}),
	)
	limited := &jobpb.TopicSettings{MaxReserved: new(uint64(2)), RateMilli: 1, Burst: 1}
	seed(
		opSettings(&jobpb.SetTopic{Topic: "t", Settings: limited}), opReserve(2, "t"), opReserve(1, "t"),
		opRelease(&jobpb.Release{Ref: bySeq(1), Undelivered: true, ReservedMs: rigStart}),
	)
	sweep := &jobpb.Sweep{Filter: &jobpb.Filter{Reason: "b"}, Scan: 5, From: &jobpb.Progress{After: &jobpb.Place{Instant: 1}, Limit: 9, Done: 1 << 30, StartMs: 5}}
	seed(
		opReserve(2, "t"), opBury(&jobpb.Bury{Ref: bySeq(1), Reason: "b"}), opKickSweep("t", 2, sweep),
		opPurge(&jobpb.Purge{Topic: "t", State: jobpb.State_STATE_READY, Max: 1, Sweep: sweep}),
	)
	seed(
		opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 1}), opMove(&jobpb.MoveJobs{Ref: bySeq(1), To: "t"}),
		opMove(&jobpb.MoveJobs{Topic: "u", To: "t", Max: 9, States: []jobpb.State{3, 2}}),
	)
	seed(
		opAdd(&jobpb.Add{Topic: "t", DelayMs: 5}), opPause("t", 5, false), opReset(rigStart-5, 0),
		opAdd(&jobpb.Add{Topic: "u"}), opAdvance(1),
	)
	index := func(topic string, names ...string) *jobpb.Op {
		return opSettings(&jobpb.SetTopic{Topic: topic, Settings: &jobpb.TopicSettings{IndexHeaders: names}})
	}
	headers := &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "h", Value: "1"}}}
	seed(
		opAdd(&jobpb.Add{Topic: "t", Options: headers}), index("t", "h"),
		opAdd(&jobpb.Add{Topic: "t", Options: headers}), opMove(&jobpb.MoveJobs{Ref: bySeq(3), To: "u"}),
		opAdvance(1),
	)
	seed(
		index("t", "h"), opAdvance(9),
		opUpdate(&jobpb.Update{Ref: bySeq(2), Headers: &jobpb.Headers{List: headers.Headers}, Condition: &jobpb.Condition{Topic: "t", Filter: &jobpb.Filter{Headers: headers.Headers}}}),
		opDelete(bySeq(2)),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, decodeErr := oplog.DecodeEntry(bytes.Clone(data))
		m, err := Open(rigDir, Options{FS: vfs.NewMem(), MemTableBytes: 64 << 10, CacheBytes: 1 << 16})
		require.NoError(t, err)
		start := encodeEntry(t, rigStart, opAdd(&jobpb.Add{Id: "x", Topic: "t", MaxAttempts: 1}), opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"))
		_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: start}}, false)
		require.NoError(t, err)
		results, changes, err := m.Apply([]Entry{{Index: 2, Term: 1, Data: data}}, true)
		require.Equal(t, decodeErr == nil, err == nil, "%v", err)
		if err == nil {
			entry, _ := oplog.DecodeEntry(data)
			require.Len(t, results[0], len(entry.Ops))
			after := encodeEntryAt(t, 0, m.Applied().ClockEpoch, opAdvance(2)) // goes through jobs when the clock was set back
			_, _, err = m.Apply([]Entry{{Index: 3, Term: 1, Data: after}}, true)
			require.NoError(t, err)
		}
		for _, p := range changes.Marks {
			require.NoError(t, p.View.Close())
		}
		v := m.View()
		require.NoError(t, check.Records(v, nil))
		require.NoError(t, v.Close())
		if err == nil {
			require.NoError(t, checkMemory(m))
		}
		require.NoError(t, m.Close())
	})
}

// checkpointFiles returns the files in an archive of a machine's state.
func checkpointFiles(t testing.TB, r *rig) map[string][]byte {
	dir := r.m.dir.CheckpointPath()
	_, cerr := r.m.checkpoint(dir)
	require.NoError(t, cerr)
	names, err := r.fs.List(dir)
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, name := range names {
		f, err := r.fs.Open(r.fs.PathJoin(dir, name))
		require.NoError(t, err)
		content, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		files[name] = content
	}
	return files
}

// patched returns content with patch at offset, or cut off there if patch is empty.
func patched(content []byte, offset uint32, patch []byte) []byte {
	at := min(int(offset), len(content))
	if len(patch) == 0 {
		return content[:at]
	}
	return slices.Concat(content[:at], patch, content[min(at+len(patch), len(content)):])
}

// A snapshot with files that were damaged before it was sent is installed or refused; a
// node that refuses it continues with its own state.
func FuzzInstall(f *testing.F) {
	o := Options{MemTableBytes: 64 << 10, CacheBytes: 1 << 16}
	sender := newRig(f, o)
	fill(sender, 20)
	want := sender.m.Applied()
	files := checkpointFiles(f, sender)
	names := slices.Sorted(maps.Keys(files))
	for i := range names {
		f.Add(uint8(i), uint32(0), []byte{0xff})       // its first byte
		f.Add(uint8(i), uint32(1<<31), []byte("more")) // behind its end
		f.Add(uint8(i), uint32(100), []byte{})         // cut off
	}
	f.Fuzz(func(t *testing.T, file uint8, offset uint32, patch []byte) {
		name := names[int(file)%len(names)]
		damaged := maps.Clone(files)
		damaged[name] = patched(files[name], offset, patch)
		data := pack(t, vfs.NewMem(), damaged, want)
		o := o
		o.FS = vfs.NewMem()
		m, err := Open(rigDir, o)
		require.NoError(t, err)
		entry := encodeEntry(t, rigStart, opAdd(&jobpb.Add{Id: "x", Topic: "t"}))
		_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: entry}}, false)
		require.NoError(t, err)
		switch err := tryInstall(m, data, want); {
		case err == nil:
			require.Equal(t, want.Index, m.Applied().Index)
		case errors.Is(err, ErrHalfInstalled):
			t.Fatalf("a damaged archive got as far as replacing the state: %v", err)
		default:
			require.EqualValues(t, 1, m.Applied().Index)
			v := m.View()
			require.NoError(t, check.Records(v, nil))
			require.NoError(t, v.Close())
		}
		require.NoError(t, m.Close())
	})
}
