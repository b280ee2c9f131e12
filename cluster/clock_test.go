package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockNeverStandsStill(t *testing.T) {
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
				got := c.now(began.Add(r.passed), epoch+r.wall, epoch+r.floor)
				require.Equal(t, r.want, sinceEpoch(got)-epoch, "after %v", r.passed)
			}
		})
	}
}
