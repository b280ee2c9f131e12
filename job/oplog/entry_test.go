package oplog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

func sampleOps() []*jobpb.Op {
	return []*jobpb.Op{
		{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Id: "a", Topic: "t", Body: []byte("body"), TtrMs: 1000}}},
		{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: "t", Max: 7}}},
		{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Seq: 1 << 40, Generation: 3}}}},
	}
}

func sampleRun(t testing.TB) []byte {
	var run []byte
	for _, op := range sampleOps() {
		var err error
		before := len(run)
		run, err = AppendOp(run, op)
		require.NoError(t, err)
		require.LessOrEqual(t, len(run)-before, OpSize(op))
	}
	return run
}

func TestEntryPutTogetherByHandIsTheSchemasEntry(t *testing.T) {
	run := sampleRun(t)
	data := append(AppendEntryHeader(nil, 1_700_000_000_123), run...)

	viaSchema := &jobpb.Entry{NowMs: 1_700_000_000_123, Ops: sampleOps()}
	want, err := viaSchema.MarshalVT()
	require.NoError(t, err)
	require.Equal(t, append([]byte{EntryVersion}, want...), data)

	e, err := DecodeEntry(data)
	require.NoError(t, err)
	require.Len(t, e.Ops, 3)
	require.Equal(t, int64(1_700_000_000_123), e.NowMs)
	n, err := CheckOps(run, job.MaxVersion)
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestAnEntrySaysWhetherItsTimeIsRounded(t *testing.T) {
	for name, c := range map[string]struct {
		nanos   int64 // after a whole millisecond
		version uint32
		rounded bool
	}{
		"a whole millisecond":                    {0, 2, false},
		"a part of one":                          {1, 2, true},
		"nearly all of one":                      {999_999, 2, true},
		"before all nodes know it":               {999_999, 1, false},
		"a whole one before all nodes know what": {0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, epoch := range []uint64{0, 300} {
				entry := AppendEntryTime(nil, time.Unix(0, 1_700_000_000_123_000_000+c.nanos), epoch, c.version)
				e, err := DecodeEntry(append(entry, sampleRun(t)...))
				require.NoError(t, err)
				require.Equal(t, int64(1_700_000_000_123), e.NowMs)
				require.Equal(t, epoch, e.ClockEpoch)
				require.Equal(t, c.rounded, e.RoundedDown)
				require.Len(t, e.Ops, len(sampleOps()))

				want, err := (&jobpb.Entry{NowMs: e.NowMs, ClockEpoch: epoch, RoundedDown: c.rounded}).MarshalVT()
				require.NoError(t, err)
				require.Equal(t, append([]byte{EntryVersion}, want...), entry)
			}
		})
	}
}

func TestAnAddIsFoundInARun(t *testing.T) {
	require.True(t, HasAdd(sampleRun(t)))
	require.False(t, HasAdd(nil))
	var run []byte
	for _, op := range sampleOps()[1:] {
		var err error
		run, err = AppendOp(run, op)
		require.NoError(t, err)
	}
	require.False(t, HasAdd(run))
	run, err := AppendOp(run, sampleOps()[0])
	require.NoError(t, err)
	require.True(t, HasAdd(run), "at the end")
	require.False(t, HasAdd(run[:len(run)-1]), "a run that is cut short is not one")
	fire, err := AppendOp(nil, &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "s"}}})
	require.NoError(t, err)
	require.True(t, HasAdd(fire), "a run of a schedule adds a job")
	put, err := AppendOp(nil, &jobpb.Op{Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: "s"}}})
	require.NoError(t, err)
	require.False(t, HasAdd(put))
}

func TestDecodeEntryRefusesWhatItDoesNotKnow(t *testing.T) {
	good := append(AppendEntryHeader(nil, 5), sampleRun(t)...)
	unknownOp := append(AppendEntryHeader(nil, 5), tagOp, 3, 0xa2, 0x1f, 0) // field 500 of Op
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"empty":                              {nil, "empty"},
		"newer version":                      {append([]byte{EntryVersion + 1}, good[1:]...), "newer release"},
		"without time":                       {append([]byte{EntryVersion}, sampleRun(t)...), "begin with its time"},
		"version alone":                      {[]byte{EntryVersion}, "begin with its time"},
		"whether its time is rounded, cut":   {append(AppendEntryHeader(nil, 5), tagRoundedDown), "rounded is cut short or not 1"},
		"whether its time is rounded, not 1": {append(AppendEntryHeader(nil, 5), tagRoundedDown, 0), "rounded is cut short or not 1"},
		"cut in its time":                    {[]byte{EntryVersion, tagNow, 0x80}, "time is cut short"},
		"cut short":                          {good[:len(good)-1], "does not decode"},
		"unknown operation":                  {unknownOp, "newer release"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeEntry(c.data)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// A run that a peer sent goes into the log as it is. An operation that does not decode there
// would stop every node that reads it, and again at each start.
func TestCheckOpsRefusesWhatMayNotEnterTheLog(t *testing.T) {
	run := sampleRun(t)
	for name, bad := range map[string][]byte{
		"cut short":               run[:len(run)-1],
		"no length":               {tagOp},
		"half a length":           {tagOp, 0x80},
		"not framed":              {9, 0},
		"goes on after the end":   append(run[:len(run):len(run)], 0),
		"operation unknown here":  {tagOp, 3, 0xa2, 0x1f, 0},
		"operation of no kind":    {tagOp, 0},
		"frame without operation": {tagOp, 2, 0xff, 0xff},
		"kind that is cut short":  {tagOp, 3, 10, 5, 10},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CheckOps(bad, job.MaxVersion)
			require.Error(t, err)
			_, err = DecodeEntry(append(AppendEntryHeader(nil, 5), bad...))
			require.Error(t, err, "else it would do no harm")
		})
	}
}

// Of several operations in one frame a decoder uses the last: so a peer could hide one that
// only the leader may propose.
func TestOneFrameHoldsOneOperation(t *testing.T) {
	touch, advance := []byte{6<<3 | 2, 0}, []byte{10<<3 | 2, 0}
	_, err := CheckOps(frame(touch), job.MaxVersion)
	require.NoError(t, err)
	_, err = CheckOps(frame(advance), job.MaxVersion)
	require.ErrorContains(t, err, "by the leader alone")
	_, err = CheckOps(frame(append(touch, advance...)), job.MaxVersion)
	require.ErrorContains(t, err, "more than one")
}

func BenchmarkCheckOps(b *testing.B) {
	var run []byte
	for range 64 {
		run, _ = AppendOp(run, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "orders", Body: make([]byte, 250), TtrMs: 60_000, MaxAttempts: 16}}})
	}
	b.SetBytes(int64(len(run)))
	for b.Loop() {
		if _, err := CheckOps(run, job.MaxVersion); err != nil {
			b.Fatal(err)
		}
	}
}

// A reader decodes into the same messages again and again; nothing of one operation may
// remain in the next.
func TestAnOperationHasNothingOfTheOneBefore(t *testing.T) {
	full := &jobpb.Add{
		Id: "a", Topic: "t", Body: []byte("body"), BodyKind: 1, Priority: 2, DelayMs: 3, DueMs: 4, TtrMs: 5, MaxAttempts: 6, IfExists: 2,
		Condition: &jobpb.Condition{Revision: 7}, Options: &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "n"}}}, TopicTtr: true, TopicAttempts: true,
	}
	finish := &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "b"}}}}
	ops := []*jobpb.Op{opAdd(full), opAdd(&jobpb.Add{Topic: "u"}), finish, opAdd(&jobpb.Add{}), opAdd(full)}
	data := AppendEntryHeader(nil, 5)
	for _, op := range ops {
		var err error
		data, err = AppendOp(data, op)
		require.NoError(t, err)
	}
	var r OpReader
	for range 2 { // it also reads one entry after the other
		now, err := r.ReadEntry(data)
		require.NoError(t, err)
		require.Equal(t, int64(5), now)
		for i, want := range ops {
			require.Equal(t, len(ops)-i, r.Left())
			got, err := r.Next()
			require.NoError(t, err)
			require.Truef(t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
		}
		end, err := r.Next()
		require.NoError(t, err)
		require.Nil(t, end)
	}
}

func opAdd(a *jobpb.Add) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Add{Add: a}} }

// A peer may send as its own work only what ends a reservation by its token.
func TestPeersDoLittleByThemselves(t *testing.T) {
	ref, unfenced := &jobpb.Ref{Seq: 1, Generation: 1}, &jobpb.Ref{Seq: 1}
	check := func(op *jobpb.Op, principal string) error {
		run, err := AppendOpOf(nil, op, principal)
		require.NoError(t, err)
		_, err = CheckOps(run, job.MaxVersion)
		return err
	}
	for _, op := range []*jobpb.Op{
		{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: ref, Undelivered: true}}},
		{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: ref, Returned: true}}},
		{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}},
	} {
		require.NoError(t, check(op, job.SystemPrincipal))
	}
	for _, op := range []*jobpb.Op{
		{Kind: &jobpb.Op_Release{Release: &jobpb.Release{Ref: unfenced}}}, {Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: unfenced}}},
		{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}}, opAdd(&jobpb.Add{Topic: "a"}),
		{Kind: &jobpb.Op_PutToken{PutToken: &jobpb.PutToken{Bootstrap: true}}}, {Kind: &jobpb.Op_DeleteToken{DeleteToken: &jobpb.DeleteToken{Id: "w"}}},
		{Kind: &jobpb.Op_SetAuth{SetAuth: new(jobpb.SetAuth)}},
	} {
		require.NoError(t, check(op, "worker"), "%T", op.Kind)
		require.ErrorContains(t, check(op, job.SystemPrincipal), "principal", "%T", op.Kind)
	}
}

// The principal stands behind the operation, which is found without decoding, and comes back.
func TestOperationsCarryTheirPrincipal(t *testing.T) {
	op := &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: &jobpb.Ref{Id: "a"}}}}
	plain, err := AppendOp(nil, op)
	require.NoError(t, err)
	run, err := AppendOpOf(nil, op, "worker")
	require.NoError(t, err)
	require.Equal(t, plain[2:], run[2:len(plain)], "without a principal the bytes are as ever")
	require.LessOrEqual(t, len(run), OpSize(op)+PrincipalSize("worker"))
	n, err := CheckOps(run, job.FirstVersion)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	r := OpReader{rest: run, version: job.FirstVersion}
	read, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "worker", read.Principal)
	require.Equal(t, "a", read.GetFinish().Ref.Id)
	again, err := AppendOp(nil, read)
	require.NoError(t, err)
	require.Equal(t, run, again)

	for _, wrong := range []string{"A", "..", strings.Repeat("a", job.MaxTokenIDBytes+1)} {
		run, err := AppendOpOf(nil, op, wrong)
		require.NoError(t, err)
		_, err = CheckOps(run, job.FirstVersion)
		require.ErrorContains(t, err, "principal", wrong)
	}
	two := append(append([]byte{}, run[2:]...), run[len(plain):]...)
	_, err = CheckOps(append([]byte{tagOp, byte(len(two))}, two...), job.FirstVersion)
	require.ErrorContains(t, err, "more than one", "two principals")
	_, err = AppendOp(nil, &jobpb.Op{Principal: "worker"})
	require.Error(t, err)
}
