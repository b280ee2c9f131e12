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
