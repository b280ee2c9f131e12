package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job/jobpb"
)

// Every operation of the schema is applied or refused; one that was forgotten would stop
// the nodes.
func TestEveryOperationIsApplied(t *testing.T) {
	kinds := (*jobpb.Op)(nil).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range kinds.Len() {
		kind := kinds.Get(i)
		t.Run(string(kind.Name()), func(t *testing.T) {
			op := new(jobpb.Op)
			m := op.ProtoReflect()
			m.Set(kind, protoreflect.ValueOfMessage(m.NewField(kind).Message()))
			require.NotNil(t, newRig(t, Options{}).one(op))
		})
	}
}
