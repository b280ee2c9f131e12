package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnInstantIsSealedOnceNoEntryOfAnEarlierTimeIsUnderWay(t *testing.T) {
	var s stamps
	at := func(ms int64, epoch uint64) func() (time.Time, uint64) {
		return func() (time.Time, uint64) { return time.UnixMilli(ms), epoch }
	}
	require.True(t, s.seal(stamp{90, 1}))
	s.next(at(100, 1))
	s.next(at(105, 1))
	require.True(t, s.seal(stamp{100, 1}))
	require.False(t, s.seal(stamp{101, 1}), "the first is earlier")
	s.end(true)
	require.True(t, s.seal(stamp{105, 1}))
	require.False(t, s.seal(stamp{105, 2}), "the time of another epoch does not count")
	s.end(true)
	require.True(t, s.seal(stamp{110, 1}))
	now, _ := s.next(at(109, 1))
	require.EqualValues(t, 110, now.UnixMilli(), "what is sealed stays so")
	s.end(true)
	now, _ = s.next(at(50, 2))
	require.EqualValues(t, 50, now.UnixMilli(), "the clock was set back")
	s.end(true)
}

func TestNothingIsSealedAfterAnUnknownOutcome(t *testing.T) {
	var s stamps
	s.next(func() (time.Time, uint64) { return time.UnixMilli(100), 0 })
	s.end(false)
	require.False(t, s.seal(stamp{100, 0}), "the entry may be committed later")
	s.begin()
	require.True(t, s.seal(stamp{100, 0}), "in the next leadership it is before every entry, or lost")
}
