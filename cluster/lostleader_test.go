package cluster

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nodeLog keeps what nodes log.
type nodeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *nodeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *nodeLog) contains(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(line))
}

// A split vote is repeated after the election timeout, which cannot be shorter than the heartbeat
// timeout. So that one is short enough to wait for, and the log shows that it was not.
func TestFollowersOfAnEndedLeaderDoNotWaitForTheHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	var log nodeLog
	c := newTunedCluster(t, 3, func(_ int, cfg *Config) {
		cfg.timing.Heartbeat, cfg.timing.Election = 20*time.Second, 20*time.Second
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	for try := 0; ; try++ {
		l := c.leader()
		c.stop(l)
		do(t, c.follower(), add("a", "t", time.Hour))
		if log.contains("the leader's process has ended; standing for election") || log.contains("the leader does not respond; electing another") {
			return
		}
		require.Less(t, try, 5, "no follower stood for election by itself")
		c.start(l) // it may have lost its leadership before it ended
	}
}

func TestALoneNodeDoesNotWaitForTheHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.timing.Heartbeat, cfg.timing.Election = time.Hour, time.Hour
	})
	do(t, c.nodes[c.leader()], add("a", "t", time.Hour))
	c.stop(0)
	do(t, c.start(0), add("b", "t", time.Hour))
}
