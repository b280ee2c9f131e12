package cluster

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSameComplaintIsPassedOnOnceInAWhile(t *testing.T) {
	r := &repeats{last: map[string]repeat{}}
	now := time.Now()
	pass, _ := r.pass("a", now)
	require.True(t, pass)
	for range 3 {
		pass, _ = r.pass("a", now.Add(time.Second))
		require.False(t, pass)
	}
	pass, _ = r.pass("b", now.Add(time.Second))
	require.True(t, pass)
	pass, kept := r.pass("a", now.Add(repeatAfter))
	require.True(t, pass)
	require.Equal(t, 3, kept)
}

func TestComplaintsAboutDifferentPeersAreToldApart(t *testing.T) {
	var out bytes.Buffer
	l := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)))
	for range 5 {
		l.Error("failed to heartbeat to", "peer", "n1:7301")
		l.Error("failed to heartbeat to", "peer", "n2:7301")
		l.Info("entering follower state")
	}
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
}
