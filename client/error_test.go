package client

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cause of an error is another failure than the call's: nothing done last, and maybe before.
func TestAnErrorHasOneCode(t *testing.T) {
	last := errorf(CodeNotApplied, "no leader")
	err := fmt.Errorf("a caller's: %w", errorf(CodeUnknown, "an earlier attempt may have been done: %w", last))
	require.ErrorIs(t, err, CodeUnknown)
	require.NotErrorIs(t, err, CodeNotApplied)
	require.NotErrorIs(t, err, Code(""))
	failed, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, CodeUnknown, failed.Code)
}
