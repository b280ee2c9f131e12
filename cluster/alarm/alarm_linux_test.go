package alarm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAFileThatThePollerDoesNotTakeIsNoAlarm(t *testing.T) {
	fd, err := unix.Open(filepath.Join(t.TempDir(), "regular"), unix.O_RDWR|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	require.NoError(t, err)
	_, err = newTimerFD(fd, func() {})
	require.ErrorIs(t, err, os.ErrNoDeadline)
}
