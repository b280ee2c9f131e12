package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm"
)

// wallHost has a clock.
type wallHost struct {
	Host
	wall func() time.Time
}

func (h wallHost) Wall() time.Time { return h.wall() }

// A thread may lose its processor between two readings of a clock.
func TestAPauseDoesNotPutTheClockAhead(t *testing.T) {
	m, err := fsm.Open("state", fsm.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	synctest.Test(t, func(t *testing.T) {
		pause := 20 * time.Millisecond
		s := &Shard{machine: m, cfg: shardConfig{Host: wallHost{wall: func() time.Time {
			time.Sleep(pause)
			return time.Now()
		}}}}
		s.Now()
		pause = 0
		time.Sleep(time.Millisecond)
		require.Equal(t, sinceEpoch(time.Now()), sinceEpoch(s.Now()))
	})
}

func TestClockNeverStops(t *testing.T) {
	const s = time.Second
	type reading struct{ passed, wall, floor, want time.Duration } // since the test began
	for name, readings := range map[string][]reading{
		"wall clock alone":          {{0, 0, 0, 0}, {s, s, 0, s}, {2 * s, 2 * s, s, 2 * s}},
		"wall clock set back":       {{0, 0, 0, 0}, {s, -9 * s, 0, s}, {3 * s, -7 * s, 0, 3 * s}, {4 * s, 4 * s, 0, 4 * s}},
		"wall clock set forward":    {{0, 0, 0, 0}, {s, 11 * s, 0, 11 * s}, {2 * s, 12 * s, 0, 12 * s}, {3 * s, 3 * s, 0, 13 * s}},
		"slow wall clock":           {{0, 0, 0, 0}, {2 * s, s, 0, 2 * s}, {4 * s, 2 * s, 0, 4 * s}},
		"read out of order":         {{0, 0, 0, 0}, {2 * s, -9 * s, 0, 2 * s}, {s, -9 * s, 0, 2 * s}, {3 * s, -9 * s, 0, 3 * s}},
		"state machine ahead":       {{0, 0, 5 * s, 5 * s}, {s, s, 5 * s, 6 * s}, {2 * s, 2 * s, 6 * s, 7 * s}},
		"ahead for long":            {{0, 0, 100 * s, 100 * s}, {61 * s, 61 * s, 0, 100*s + 61*s - 61*s/8}, {69 * s, 69 * s, 0, 100*s + 69*s - 61*s/8 - s}},
		"ahead for long, then meet": {{0, 0, s, s}, {80 * s, 80 * s, 0, 80 * s}, {81 * s, 81 * s, 0, 81 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var c clock
			for _, r := range readings {
				epoch := sinceEpoch(began)
				got := c.now(began.Add(r.passed), epoch+r.wall, epoch+r.floor, 0)
				require.Equal(t, r.want, sinceEpoch(got)-epoch, "after %v", r.passed)
			}
		})
	}
}

// A wall clock that is off the voters' clocks does not move the queue's clock, in one step or
// in many.
func TestAWallClockOffTheMajoritysIsNotFollowed(t *testing.T) {
	const s, h = time.Second, time.Hour
	type step struct {
		passed, wall time.Duration
		confirmed    time.Duration // the majority's clock, if not 0
		want         time.Duration
	}
	for name, c := range map[string]struct {
		steps   []step
		wentOff int
	}{
		"within what it may be off":    {[]step{{passed: s, wall: 4 * s, want: 4 * s}, {passed: 2 * s, wall: 7 * s, want: 7 * s}}, 0},
		"an hour ahead, for long":      {[]step{{passed: s, wall: h, want: s}, {passed: 2 * s, wall: h + s, want: 2 * s}, {passed: 9 * s, wall: h + 8*s, want: 9 * s}}, 1},
		"in small steps, unconfirmed":  {[]step{{passed: s, wall: 5 * s, want: 5 * s}, {passed: 2 * s, wall: 9 * s, want: 6 * s}, {passed: 3 * s, wall: 13 * s, want: 7 * s}}, 1},
		"the majority goes there too":  {[]step{{passed: s, wall: h, want: s}, {passed: 2 * s, wall: h + s, confirmed: h + s, want: h + s}}, 1},
		"an hour behind the majority":  {[]step{{passed: s, wall: s - h, want: s}, {passed: 2 * s, wall: 2*s - h, want: 2 * s}}, 1},
		"right again, and off again":   {[]step{{passed: s, wall: h, want: s}, {passed: 2 * s, wall: 2 * s, want: 2 * s}, {passed: 3 * s, wall: h, want: 3 * s}}, 2},
		"a majority that is behind us": {[]step{{passed: s, wall: s, confirmed: s - h, want: s}, {passed: 2 * s, wall: 2 * s, want: 2 * s}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			epoch := sinceEpoch(began)
			wentOff := 0
			k := clock{most: 5 * s, wentOff: func() { wentOff++ }}
			k.begin(began, epoch)
			k.now(began, epoch, 0, 0)
			for _, r := range c.steps {
				real := began.Add(r.passed)
				if r.confirmed != 0 {
					k.confirm(real, epoch+r.confirmed)
				}
				require.Equal(t, r.want, sinceEpoch(k.now(real, epoch+r.wall, 0, 0))-epoch, "after %v", r.passed)
			}
			require.Equal(t, c.wentOff, wentOff)
		})
	}
}
