package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job/jobpb"
)

// The table in the docs is generated; -update writes it.
func TestTheTableOfFieldsInTheDocs(t *testing.T) {
	types := map[FieldType]string{FieldInstant: "instant: ", FieldDuration: "seconds: "}
	var rows strings.Builder
	for _, f := range Fields {
		shown := "always"
		switch {
		case f.In != jobpb.State_STATE_NONE:
			shown = "while " + strings.ToLower(strings.TrimPrefix(f.In.String(), "STATE_"))
		case f.Optional:
			shown = "if it has one"
		}
		fmt.Fprintf(&rows, "| `%s` | %s%s | %s |\n", f.Name, types[f.Type], f.Help, shown)
	}
	tableInDocs(t, "../docs/http-api.md", "| member of a job | what it is | there |\n|---|---|---|\n", rows.String())
}

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
