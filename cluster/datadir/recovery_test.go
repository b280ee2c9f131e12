package datadir

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFullDiskIsExplained(t *testing.T) {
	require.NoError(t, WithRoom(nil, "/somewhere"))
	other := errors.New("other")
	require.Equal(t, other, WithRoom(other, "/somewhere"))
	for _, full := range []error{fmt.Errorf("log: append: %w", syscall.ENOSPC), errors.New("store: write 000012.log: no space left on device")} {
		require.ErrorContains(t, WithRoom(full, "/somewhere"), "the disk of /somewhere is full: free some space")
		require.ErrorIs(t, WithRoom(full, "/somewhere"), full)
	}
}

func TestRecoverySaysWhatAnOperatorCanDo(t *testing.T) {
	const shard = "/somewhere/shard-0"
	require.NoError(t, WithRecovery(nil, shard))
	for _, c := range []struct {
		cause     error
		says, not string
	}{
		{errors.New("damaged"), "If it is one of several nodes, and the others are a majority and run: move /somewhere away", "stop it"},
		{errors.New("damaged"), "If it is the only node, or a majority is lost: do not remove the directory", "stop it"},
		{fmt.Errorf("lock: %w", syscall.EAGAIN), "another process has a file below /somewhere/shard-0 open: stop it", "move"},
		{fmt.Errorf("open: %w", syscall.EACCES), "permission denied", "move"},
		{fmt.Errorf("write: %w", syscall.ENOSPC), "no space left", "move"},
	} {
		err := WithRecovery(c.cause, shard)
		require.ErrorIs(t, err, c.cause)
		require.ErrorContains(t, err, c.says)
		require.NotContains(t, err.Error(), c.not)
	}
}
