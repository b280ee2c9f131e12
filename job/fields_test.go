package job

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job/jobpb"
)

// Every field of a jobpb.Job has a row, or is shown otherwise.
func TestEveryFieldOfAJobHasARow(t *testing.T) {
	byOtherMeans := []string{"state", "options", "body", "body_kind", "history", "history_dropped"}
	fields := (*jobpb.Job)(nil).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field, j, shown := fields.Get(i), new(jobpb.Job), false
		switch field.Kind() {
		case protoreflect.StringKind:
			j.ProtoReflect().Set(field, protoreflect.ValueOfString("x"))
		case protoreflect.Int64Kind:
			j.ProtoReflect().Set(field, protoreflect.ValueOfInt64(1))
		case protoreflect.Uint32Kind:
			j.ProtoReflect().Set(field, protoreflect.ValueOfUint32(1))
		case protoreflect.Uint64Kind:
			j.ProtoReflect().Set(field, protoreflect.ValueOfUint64(1))
		}
		for _, f := range Fields {
			shown = shown || f.number != nil && f.Number(j) != 0 || f.text != nil && f.Text(j) != ""
		}
		require.NotEqual(t, slices.Contains(byOtherMeans, string(field.Name())), shown, field.Name())
	}
}
