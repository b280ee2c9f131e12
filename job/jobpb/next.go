//go:build chaos && next

// Package jobpb has the messages of operations and results, generated from the schema, and
// the additions of a build that stands for the next release.
package jobpb

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// NextField is the number, in Op and in Update, of the field that the next release adds.
const NextField = 100

// Op_Stamp is the operation that the next release adds: it stamps a job. Its message is like
// a Finish.
type Op_Stamp struct{ Stamp *Finish }

func (*Op_Stamp) isOp_Kind() {}

func (k *Op_Stamp) SizeVT() int {
	return protowire.SizeTag(NextField) + protowire.SizeBytes(k.Stamp.SizeVT())
}

func (k *Op_Stamp) MarshalToSizedBufferVT(b []byte) (int, error) {
	inner, err := k.Stamp.MarshalVT()
	if err != nil {
		return 0, err
	}
	out := protowire.AppendBytes(protowire.AppendTag(nil, NextField, protowire.BytesType), inner)
	copy(b[len(b)-len(out):], out)
	return len(out), nil
}

// DecodeNext decodes the operation from the unknown fields.
func DecodeNext(op *Op) error {
	if len(op.unknownFields) == 0 {
		return nil
	}
	number, wire, n := protowire.ConsumeTag(op.unknownFields)
	if n < 0 || number != NextField || wire != protowire.BytesType {
		return errors.New("it is not an operation of the next release")
	}
	inner, n := protowire.ConsumeBytes(op.unknownFields[n:])
	if n < 0 {
		return protowire.ParseError(n)
	}
	k := &Op_Stamp{Stamp: new(Finish)}
	op.Kind = k
	return k.Stamp.UnmarshalVTUnsafe(inner)
}

// SetStamps sets the field of an update that the next release adds.
func (m *Update) SetStamps(stamps uint32) {
	m.unknownFields = protowire.AppendVarint(protowire.AppendTag(nil, NextField, protowire.VarintType), uint64(stamps))
}

// Stamps returns that field; 0 without it.
func (m *Update) Stamps() uint32 {
	number, wire, n := protowire.ConsumeTag(m.unknownFields)
	if n < 0 || number != NextField || wire != protowire.VarintType {
		return 0
	}
	v, n := protowire.ConsumeVarint(m.unknownFields[n:])
	if n < 0 {
		return 0
	}
	return uint32(v)
}
