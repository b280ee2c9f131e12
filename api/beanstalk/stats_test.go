package beanstalk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// beanstalkd counts in nanoseconds, some of which are always over by the time it
// answers: of ten seconds it never says that ten are left.
func TestWhatIsLeftOfATime(t *testing.T) {
	for left, want := range map[int64]uint64{-1: 0, 0: 0, 1: 0, 999: 0, 1000: 0, 1001: 0, 1002: 1, 9999: 9, 10_000: 9, 10_001: 9, 10_002: 10} {
		require.Equal(t, want, secondsLeft(left), "%d ms", left)
	}
	until := time.Now().Add(10 * time.Second).UnixMilli()
	require.EqualValues(t, 9, pauseLeft(&jobpb.Topic{PausedUntilMs: until}))
	require.Zero(t, pauseLeft(&jobpb.Topic{}))
}
