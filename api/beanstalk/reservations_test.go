package beanstalk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSoonFollowsTheEarliestHold(t *testing.T) {
	var h reservations
	now := time.Now()
	require.Equal(t, forever, h.soon(now))

	h.add(1, 1, 100*time.Second)
	h.add(2, 1, 10*time.Second)
	near(t, 9*time.Second, h.soon(now))
	h.drop(2)
	near(t, 90*time.Second, h.soon(now.Add(9*time.Second)))
	h.add(3, 1, 5*time.Second)
	h.add(3, 1, 60*time.Second) // touched
	near(t, 59*time.Second, h.soon(now))
	h.drop(3)
	require.Negative(t, h.soon(now.Add(99500*time.Millisecond)))

	// An expired reservation causes no warning; it is kept until it is old.
	require.Equal(t, forever, h.soon(now.Add(101*time.Second)))
	ref, held := h.ref(1)
	require.True(t, held)
	require.EqualValues(t, 1, ref.Generation)
	h.sweep(now.Add(time.Hour))
	_, held = h.ref(1)
	require.False(t, held)
}

func near(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InDelta(t, want.Seconds(), got.Seconds(), 1)
}
