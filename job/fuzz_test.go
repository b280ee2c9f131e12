package job

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job/jobpb"
)

// An entry is refused or decoded whole, and what was decoded encodes and decodes to the
// same.
func FuzzDecodeEntry(f *testing.F) {
	f.Add(append(AppendEntryHeader(nil, 5), sampleRun(f)...))
	f.Add(AppendEntryHeader(nil, math.MinInt64))
	f.Add(append(AppendClockEpoch(AppendEntryHeader(nil, 5), 300), sampleRun(f)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		e, err := DecodeEntry(data)
		require.Equal(t, before, data, "decoding must not change the log")
		require.Equal(t, err == nil, e != nil)
		if err != nil {
			return
		}
		schema := new(jobpb.Entry)
		require.NoError(t, schema.UnmarshalVTUnsafe(data[1:]), "it is of the schema")
		require.True(t, proto.Equal(schema, e))
		again := AppendClockEpoch(AppendEntryHeader(nil, e.NowMs), e.ClockEpoch)
		for _, op := range e.Ops {
			again, err = AppendOp(again, op)
			require.NoError(t, err)
		}
		got, err := DecodeEntry(again)
		require.NoError(t, err)
		require.Equal(t, e.NowMs, got.NowMs)
		require.Equal(t, e.ClockEpoch, got.ClockEpoch)
		require.Len(t, got.Ops, len(e.Ops))
		for i := range e.Ops {
			require.True(t, proto.Equal(e.Ops[i], got.Ops[i]))
		}
	})
}

// A run that passes the check is an entry that every node can read.
func FuzzCheckOps(f *testing.F) {
	f.Add(sampleRun(f))
	f.Add([]byte{tagOp, 3, 0xa2, 0x1f, 0})
	f.Add([]byte{tagOp, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, run []byte) {
		n, err := CheckOps(run, MaxVersion)
		if err != nil {
			return
		}
		e, err := DecodeEntry(append(AppendEntryHeader(nil, 5), run...))
		require.NoError(t, err)
		require.Len(t, e.Ops, n)
		require.Equal(t, int64(5), e.NowMs)
	})
}

// message has the generated methods of each message.
type message interface {
	proto.Message
	MarshalVT() ([]byte, error)
	UnmarshalVTUnsafe([]byte) error
}

// messages returns one of each message that is sent or stored.
var messages = []message{
	(*jobpb.Entry)(nil), (*jobpb.Op)(nil), (*jobpb.Reserve)(nil), (*jobpb.Result)(nil),
	(*jobpb.Results)(nil), (*jobpb.Job)(nil), (*jobpb.Topic)(nil), (*jobpb.ScheduleInfo)(nil),
}

func fresh(i uint8) message {
	return reflect.New(reflect.TypeOf(messages[int(i)%len(messages)]).Elem()).Interface().(message)
}

// What the generated code decodes and encodes again has the same content for the decoder by
// reflection. The two may differ in what they refuse: the one by reflection refuses text
// that is not UTF-8, and ignores a field of the wrong type.
func FuzzMessages(f *testing.F) {
	for i, m := range []message{
		&jobpb.Entry{NowMs: -1, Ops: sampleOps()},
		sampleOps()[2],
		&jobpb.Reserve{Topics: []string{"a", ""}, Max: 1 << 31, MaxBytes: -1},
		&jobpb.Result{Code: jobpb.Code_INVALID, Message: "m", Jobs: []*jobpb.Reserved{{Id: "i", Body: []byte{0}}}},
		&jobpb.Results{Results: []*jobpb.Result{{}, {Existing: true}}},
		&jobpb.Job{Id: "i", State: jobpb.State_STATE_DEAD, Reason: "r", Kicks: 1},
		&jobpb.Topic{Name: "t", Ready: math.MaxUint64, PauseMs: 1},
		&jobpb.ScheduleInfo{Name: "s", Schedule: &jobpb.Schedule{Spec: "* * * * *", Job: &jobpb.Add{Topic: "t"}}, State: &jobpb.ScheduleState{NextMs: -1, Past: []*jobpb.PastRun{{}}}},
	} {
		b, err := m.MarshalVT()
		require.NoError(f, err)
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		m, before, after := fresh(kind), fresh(kind), fresh(kind)
		if err := m.UnmarshalVTUnsafe(data); err != nil {
			return
		}
		again, err := m.MarshalVT()
		require.NoError(t, err)
		known := proto.UnmarshalOptions{DiscardUnknown: true}
		if err := known.Unmarshal(data, before); err != nil {
			return
		}
		require.NoError(t, known.Unmarshal(again, after))
		require.True(t, proto.Equal(before, after), "%v\n%v", before, after)
	})
}

// Only the forms that String and ServerID write are accepted.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"0-1-1", "4294967295-18446744073709551615-4294967295", "$0-1", "$00-1", "0-+1-1", "order-1", "\x7f", "\xc2\x85"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if token, err := ParseToken(s); err == nil {
			require.Equal(t, s, token.String())
		} else {
			require.Less(t, len(err.Error()), 300, "an error repeats little of what was sent")
		}
		if shard, seq, ok := ParseServerID(s); ok {
			require.Equal(t, s, ServerID(shard, seq))
			require.NoError(t, CheckRefID("id", s))
			require.Error(t, CheckID("id", s))
		}
		err := CheckTopic("topic", s)
		if err == nil {
			require.True(t, utf8.ValidString(s) && len(s) <= MaxNameBytes && s != "")
		} else {
			require.Equal(t, CodeInvalid, CodeOf(err))
			require.Less(t, len(err.Error()), 300)
		}
	})
}

// Any number of seconds becomes milliseconds within the bounds, or an error.
func FuzzMillis(f *testing.F) {
	for _, s := range []float64{0, math.Copysign(0, -1), 0.0004999, 1e9, 1e9 + 1, 1e300, math.NaN(), math.Inf(1)} {
		f.Add(s, int64(MaxDelay))
	}
	f.Fuzz(func(t *testing.T, seconds float64, most int64) {
		limit := time.Duration(most)
		if limit < 0 || limit > MaxDelay {
			return
		}
		ms, err := Millis("delay", seconds, limit)
		if err != nil {
			require.Equal(t, CodeInvalid, CodeOf(err))
			return
		}
		require.Equal(t, seconds > 0, ms > 0, "0 stands for never in some places")
		require.LessOrEqual(t, time.Duration(ms)*time.Millisecond, max(limit+time.Millisecond/2, time.Millisecond))
		require.InDelta(t, seconds, float64(ms)/1000, 0.001)
	})
}
