package oplog

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

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
		n, err := CheckOps(run, job.MaxVersion)
		if err != nil {
			return
		}
		e, err := DecodeEntry(append(AppendEntryHeader(nil, 5), run...))
		require.NoError(t, err)
		require.Len(t, e.Ops, n)
		require.Equal(t, int64(5), e.NowMs)
	})
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
