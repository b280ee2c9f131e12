package logstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWriteTimeIsTheMeanOfTheLastAppends(t *testing.T) {
	var l latency
	now := time.Unix(1000, 0)
	require.Zero(t, l.mean(now))
	write := func(d time.Duration) {
		l.begin(now)
		now = now.Add(d)
		l.end(now)
	}
	write(4 * time.Second)
	require.Equal(t, 4*time.Second, l.mean(now))
	write(2 * time.Second)
	require.Equal(t, 3*time.Second, l.mean(now))
	for range latencyWindow {
		write(time.Millisecond)
	}
	require.Equal(t, time.Millisecond, l.mean(now), "earlier appends do not count")

	l.begin(now)
	require.Equal(t, time.Millisecond, l.mean(now), "a short write under way does not count")
	now = now.Add(8991 * time.Millisecond)
	require.Equal(t, (latencyWindow+8991)*time.Millisecond/(latencyWindow+1), l.mean(now), "a disk that hangs is slow before the write ends")
	l.end(now)
}
