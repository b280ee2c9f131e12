package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllThreadsHaveTheTimerSlack(t *testing.T) {
	err := relaxTimers()
	if errors.Is(err, syscall.ENOTSUP) {
		t.Skip("this test binary uses cgo")
	}
	require.NoError(t, err)
	// Threads that start later have it too.
	var threads sync.WaitGroup
	defer threads.Wait()
	end := make(chan struct{})
	defer close(end)
	for range 4 {
		started := make(chan struct{})
		threads.Go(func() {
			runtime.LockOSThread() // without an unlock: the thread ends with the goroutine
			close(started)
			<-end
		})
		<-started
	}
	paths, err := filepath.Glob("/proc/self/task/*")
	require.NoError(t, err)
	require.Greater(t, len(paths), 4)
	for _, p := range paths {
		slack, err := os.ReadFile("/proc/" + filepath.Base(p) + "/timerslack_ns")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if errors.Is(err, os.ErrPermission) {
			t.Skip("only a privileged process may read the slack of its threads")
		}
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(timerSlack.Nanoseconds()), strings.TrimSpace(string(slack)), p)
	}
}
