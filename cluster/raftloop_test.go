package cluster

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALoopThatHangsIsNamedWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		release := make(chan struct{})
		var probes atomic.Int32
		w := &loopWatch{
			respond: func() { probes.Add(1); <-release }, busy: func() string { return "it takes over a state from the leader" },
			run: func(f func()) bool { go f(); return true }, log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		require.Empty(t, w.trouble(time.Now()))
		time.Sleep(loopLimit)
		require.Empty(t, w.trouble(time.Now()))
		require.Empty(t, log.String())
		time.Sleep(2 * time.Second)
		for range 3 {
			require.Equal(t, "its Raft loop has not responded for 7s: it takes over a state from the leader", w.trouble(time.Now()))
		}
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("main loop does not respond")), "logged once")
		require.Contains(t, log.String(), "takes over a state")
		require.EqualValues(t, 1, probes.Load(), "one at a time")
		close(release)
		synctest.Wait()
		require.Empty(t, w.trouble(time.Now()))
		require.Contains(t, log.String(), "responds again")
		synctest.Wait()
		require.EqualValues(t, 2, probes.Load())
	})
}
