package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

func TestAnInterruptedCommandSaysWhatItLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	failed := errors.New("failed")
	require.Equal(t, failed, Interrupted(ctx, failed, "there is no backup"))
	cancel()
	require.NoError(t, Interrupted(ctx, nil, "there is no backup"), "it was done all the same")
	require.EqualError(t, Interrupted(ctx, failed, "there is no backup"), "interrupted; there is no backup")
	unknown := &client.Error{Code: client.CodeUnknown, Unknown: true}
	require.Equal(t, ExitUnknown, ExitCode(Interrupted(ctx, unknown, "nothing was done")))
}
