package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func table(t testing.TB, spec, zone string, change func(*jobpb.Schedule)) *Timetable {
	t.Helper()
	s := &jobpb.Schedule{Spec: spec, Zone: zone}
	if change != nil {
		change(s)
	}
	table, err := New(s, 0)
	require.NoError(t, err)
	return table
}

// The count equals that of a walk over the instants, mostly around changes of the clock.
func TestCountEqualsAWalk(t *testing.T) {
	var changes []time.Time // of Berlin, New York, Lord Howe (half an hour), Apia (a day), Casablanca
	for _, at := range []string{
		"2025-03-30T01:00:00Z", "2025-10-26T01:00:00Z", "2025-03-09T07:00:00Z", "2025-11-02T06:00:00Z",
		"2025-04-05T15:00:00Z", "2025-10-04T15:30:00Z", "2011-12-30T10:00:00Z", "2025-02-23T02:00:00Z", "2040-12-31T12:00:00Z",
	} {
		instant, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		changes = append(changes, instant)
	}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Kathmandu"}
	specs := []string{
		"*/7 * * * * *", "0 * * * *", "*/10 1-4 * * *", "30 2 * * *", "15,45 0,2,3 * * *", "0 0 * * *", "*/20 */5 * * 1-5",
		"59 */13 * * * *", "0 30 23 31 * *", "@every 13s", "@daily", "10 0 2 29 2 *",
	}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		spec, zone := specs[rng.IntN(len(specs))], zones[rng.IntN(len(zones))]
		near := changes[rng.IntN(len(changes))].UnixMilli()
		from := near - rng.Int64N(3*24*hourMS)
		to := near + rng.Int64N(3*24*hourMS)
		tt := table(t, spec, zone, func(s *jobpb.Schedule) {
			if rng.IntN(4) == 0 {
				s.StartMs = near - rng.Int64N(24*hourMS)
			}
			if rng.IntN(4) == 0 {
				s.EndMs = near + rng.Int64N(24*hourMS)
			}
		})
		require.Equal(t, tt.countBlocks(from, to, nil), tt.count(from, to), fmt.Sprintf("seed %d: %q in %s, %d to %d", seed, spec, zone, from, to))
	}
}

// Thousands of schedules of every second are planned after an outage of days.
func BenchmarkPlanAfterDays(b *testing.B) {
	const now = 1_700_000_000_000
	for _, spec := range []string{"@every 1s", "* * * * * *", "*/5 * 1-23 * * *"} {
		b.Run(spec, func(b *testing.B) {
			s := &jobpb.ScheduleInfo{
				Name:     "s",
				Schedule: &jobpb.Schedule{Spec: spec, Zone: "Europe/Berlin", MissedAfterMs: 30_000},
				State:    &jobpb.ScheduleState{NextMs: now - 3*24*hourMS},
			}
			for b.Loop() {
				Plan(s, now, 10)
			}
		})
	}
}
