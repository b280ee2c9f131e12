package oplog

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job"
	"tarry/job/jobpb"
)

// frame returns a run with an encoded operation.
func frame(op []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), op)
}

// refusedEverywhere checks that an encoded operation neither enters the log nor is applied.
func refusedEverywhere(t *testing.T, op []byte, says string) {
	t.Helper()
	_, err := CheckOps(frame(op), job.MaxVersion)
	require.ErrorContains(t, err, says)
	require.ErrorAs(t, err, new(*NewerError))
	_, err = DecodeEntry(append(AppendEntryHeader(nil, 5), frame(op)...))
	require.ErrorContains(t, err, says)
}

// eachMessage calls f for every message that an operation can have; wrap encodes an
// operation with the encoded message.
func eachMessage(d protoreflect.MessageDescriptor, wrap func([]byte) []byte, f func(protoreflect.MessageDescriptor, func([]byte) []byte)) {
	f(d, wrap)
	for i := range d.Fields().Len() {
		if field := d.Fields().Get(i); field.Kind() == protoreflect.MessageKind {
			eachMessage(field.Message(), func(b []byte) []byte {
				return wrap(protowire.AppendBytes(protowire.AppendTag(nil, field.Number(), protowire.BytesType), b))
			}, f)
		}
	}
}

// This release does not ignore an addition of a newer one, wherever it is.
func TestWhatANewerReleaseAddsIsRefused(t *testing.T) {
	count := 0
	eachMessage(opDescriptor, func(b []byte) []byte { return b }, func(d protoreflect.MessageDescriptor, wrap func([]byte) []byte) {
		count++
		unknown := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
		refusedEverywhere(t, wrap(unknown), "field 1000 of "+string(d.Name())+" is unknown here")
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			if f.Kind() != protoreflect.EnumKind {
				continue
			}
			says := "the value 99 of " + string(d.Name()) + "." + string(f.Name())
			value := protowire.AppendVarint(protowire.AppendTag(nil, f.Number(), protowire.VarintType), 99)
			refusedEverywhere(t, wrap(value), says)
			if f.IsList() {
				packed := protowire.AppendBytes(protowire.AppendTag(nil, f.Number(), protowire.BytesType), []byte{1, 99})
				refusedEverywhere(t, wrap(packed), says)
			}
		}
	})
	require.Greater(t, count, 50)
}

// Decoders ignore unknown fields, so the schema must refuse them.
func TestDecodersPassOverUnknownFields(t *testing.T) {
	var op jobpb.Op
	touch := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	require.NoError(t, op.UnmarshalVTUnsafe(protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), touch)))
	require.NotNil(t, op.GetTouch())
}

func TestTheVersionDecidesWhatIsTaken(t *testing.T) {
	newer := func(name protoreflect.FullName) *schema {
		if row, found := operations[name.Name()]; found && name.Parent() == opName {
			operations[name.Name()] = operation{since: 2}
			defer func() { operations[name.Name()] = row }()
		} else {
			since[name] = 2
			defer delete(since, name)
		}
		return schemaOf(opDescriptor)
	}
	encode := func(op *jobpb.Op) []byte {
		b, err := proto.Marshal(op)
		require.NoError(t, err)
		return b
	}
	touch := encode(&jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: &jobpb.Ref{Id: "a"}, TtrMs: 5}}})
	move := encode(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{States: []jobpb.State{1, 4}}}})
	for name, tt := range map[string]struct {
		came protoreflect.FullName
		op   []byte
		says string
	}{
		"operation":             {"tarry.v1.Op.touch", touch, "Op.touch"},
		"field":                 {"tarry.v1.Touch.ttr_ms", touch, "Touch.ttr_ms"},
		"field of a part":       {"tarry.v1.Ref.id", touch, "Ref.id"},
		"value of an enum":      {"tarry.v1.STATE_DEAD", move, "MoveJobs.states"},
		"field that is not set": {"tarry.v1.Ref.generation", touch, ""},
		"value that is not set": {"tarry.v1.STATE_READY", move, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newer(tt.came)
			require.NoError(t, s.check(tt.op, 2))
			err := s.check(tt.op, 1)
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.says+" needs cluster version 2, and the cluster has version 1 until all of its nodes are upgraded")
		})
	}
}

func BenchmarkSchemaOfAnAdd(b *testing.B) {
	op, err := (&jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{
		Id: "order-8123", Topic: "orders", Body: make([]byte, 1000), Priority: 1024, DelayMs: 60_000, TtrMs: 30_000, MaxAttempts: 16, TopicTtr: true, TopicAttempts: true,
	}}}).MarshalVT()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if err := opSchema.check(op, job.MaxVersion); err != nil {
			b.Fatal(err)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// What was added after job.FirstVersion must be in the table, or it is proposed to nodes that do
// not know it. The list is that of job.FirstVersion; until a release has run it, -update adds
// what is new.
func TestWhatIsNotOfTheFirstVersionIsNamedInTheTable(t *testing.T) {
	const golden = "testdata/version-1.txt"
	names := map[protoreflect.FullName]bool{}
	eachMessage(opDescriptor, func(b []byte) []byte { return b }, func(d protoreflect.MessageDescriptor, _ func([]byte) []byte) {
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			names[f.FullName()] = true
			for k := 0; f.Enum() != nil && k < f.Enum().Values().Len(); k++ {
				names[f.Enum().Values().Get(k).FullName()] = true
			}
		}
	})
	for name := range names {
		if sinceOf(name) > job.FirstVersion {
			delete(names, name)
		}
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintln(&list, name)
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(list.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), list.String(), "name what is new in the table since of schema.go; what is gone stays reserved")
}
