package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// emptyState is a Reader of a state without jobs.
type emptyState struct{}

func (emptyState) Read(context.Context, *jobpb.Read, bool) (*jobpb.ReadResult, error) {
	return &jobpb.ReadResult{}, nil
}

func TestErrorsOfPeekNameStatesAsUsersDo(t *testing.T) {
	for state, want := range map[jobpb.State]string{
		jobpb.State_STATE_READY:    `topic "t" has no ready job`,
		jobpb.State_STATE_RESERVED: "state is reserved; it must be ready, delayed or dead",
	} {
		_, err := Reads{emptyState{}}.Peek(t.Context(), "t", state, false)
		require.EqualError(t, err, want)
	}
}
