package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// planned plans the schedule of every second from 1000 s on, whose next run is at nextS.
func planned(t *testing.T, nextS, nowS int64, maxRuns int, change func(*jobpb.Schedule)) *jobpb.FireSchedule {
	def := &jobpb.Schedule{Spec: "@every 1s", Zone: "UTC", StartMs: 1_000_000, MissedAfterMs: 3000}
	if change != nil {
		change(def)
	}
	s := &jobpb.ScheduleInfo{Name: "s", Schedule: def, State: &jobpb.ScheduleState{Revision: 7, NextMs: nextS * 1000}}
	f := Plan(s, nowS*1000, maxRuns)
	require.Equal(t, "s", f.Name)
	require.EqualValues(t, 7, f.Revision)
	require.Equal(t, nextS*1000, f.ExpectNextMs)
	return f
}

func secondsOf(f *jobpb.FireSchedule) (list []int64) {
	for _, r := range f.Runs {
		list = append(list, r.PlannedMs/1000)
	}
	return list
}

func TestADueRunIsStartedAndTheNextIsPlanned(t *testing.T) {
	f := planned(t, 1005, 1005, 10, nil)
	require.Equal(t, []int64{1005}, secondsOf(f))
	require.EqualValues(t, 1_006_000, f.NextMs)
	require.Zero(t, f.Missed)
	f = planned(t, 1005, 1008, 10, nil)
	require.Equal(t, []int64{1005, 1006, 1007, 1008}, secondsOf(f), "late, but not missed")
	require.Empty(t, planned(t, 1005, 1004, 10, nil).Runs, "never early")
}

func TestMissedRuns(t *testing.T) {
	// At 1020 those before 1017 are missed: twelve from 1005 to 1016.
	for _, c := range []struct {
		policy     jobpb.Missed
		max        uint32
		runs       []int64
		missed     uint64
		lastMissed int64
	}{
		{jobpb.Missed_MISSED_SKIP, 0, []int64{1017, 1018, 1019, 1020}, 12, 1016},
		{jobpb.Missed_MISSED_ONE, 0, []int64{1016, 1017, 1018, 1019, 1020}, 11, 1015},
		{jobpb.Missed_MISSED_ALL, 3, []int64{1014, 1015, 1016, 1017, 1018, 1019, 1020}, 9, 1013},
		{jobpb.Missed_MISSED_ALL, 12, []int64{1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1017, 1018, 1019, 1020}, 0, 0},
		{jobpb.Missed_MISSED_ALL, 1000, []int64{1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1017, 1018, 1019, 1020}, 0, 0},
	} {
		f := planned(t, 1005, 1020, 100, func(s *jobpb.Schedule) { s.Missed, s.MissedMax = c.policy, c.max })
		require.Equal(t, c.runs, secondsOf(f), "%s %d", c.policy, c.max)
		require.Equal(t, c.missed, f.Missed, "%s %d", c.policy, c.max)
		require.Equal(t, c.lastMissed*1000, f.LastMissedMs, "%s %d", c.policy, c.max)
		require.EqualValues(t, 1_021_000, f.NextMs)
	}
}

func TestManyRunsAreStartedInRounds(t *testing.T) {
	all := func(s *jobpb.Schedule) { s.Missed, s.MissedMax = jobpb.Missed_MISSED_ALL, 10 }
	var got []int64
	var missed uint64
	next := int64(1000)
	for next <= 1050 {
		f := planned(t, next, 1050, 4, all)
		require.LessOrEqual(t, len(f.Runs), 4)
		got, missed = append(got, secondsOf(f)...), missed+f.Missed
		require.Greater(t, f.NextMs, next*1000)
		next = f.NextMs / 1000
	}
	require.Equal(t, []int64{1037, 1038, 1039, 1040, 1041, 1042, 1043, 1044, 1045, 1046, 1047, 1048, 1049, 1050}, got)
	require.EqualValues(t, 37, missed)
}

func TestYearsOfMissedSecondsAreNotCountedOneByOne(t *testing.T) {
	const year = 365 * 24 * 3600
	for spec, missed := range map[string]uint64{
		"@every 1s": 10*year - 3 - 1000 - 3, "* * * * * *": 10*year - 3 - 1000 - 3, "* * 12 1 * *": 10*12*3600 - 3,
	} {
		f := planned(t, 1000, 10*year, 100, func(s *jobpb.Schedule) { s.Spec, s.Missed, s.MissedMax = spec, jobpb.Missed_MISSED_ALL, 3 })
		require.Equal(t, missed, f.Missed, spec)
		late := 0
		for _, r := range f.Runs {
			if r.PlannedMs < (10*year-3)*1000 {
				late++
			}
		}
		require.Equal(t, 3, late, spec)
		require.Less(t, f.LastMissedMs, f.Runs[0].PlannedMs)
	}
}

func TestAScheduleThatEnds(t *testing.T) {
	f := planned(t, 1005, 1010, 100, func(s *jobpb.Schedule) { s.EndMs = 1_007_000 })
	require.Equal(t, []int64{1007}, secondsOf(f))
	require.EqualValues(t, 2, f.Missed)
	require.Zero(t, f.NextMs)
}

func TestTheFirstInstantFollowsTheLastChange(t *testing.T) {
	s := &jobpb.ScheduleInfo{Name: "s", Schedule: &jobpb.Schedule{Spec: "0 * * * *", Zone: "UTC"}, State: &jobpb.ScheduleState{ChangedMs: 3_600_000, Unplanned: true}}
	f := Plan(s, 99_000_000, 10)
	require.Empty(t, f.Runs)
	require.EqualValues(t, 7_200_000, f.NextMs)
	s.Schedule.Zone = "Europe/Bielefeld"
	f = Plan(s, 99_000_000, 10)
	require.Contains(t, f.Trouble, "Europe/Bielefeld")
	require.Zero(t, f.NextMs)
}

func TestRunsHaveTheOffsetOfTheirZone(t *testing.T) {
	s := &jobpb.ScheduleInfo{Schedule: &jobpb.Schedule{Spec: "30 2 * * *", Zone: "Europe/Berlin", MissedAfterMs: 1000}, State: &jobpb.ScheduleState{}}
	s.State.NextMs = at(t, "2026-03-29T01:00:00Z")
	f := Plan(s, s.State.NextMs, 10)
	require.EqualValues(t, 7200, f.Runs[0].OffsetS)
	require.Equal(t, at(t, "2026-03-30T00:30:00Z"), f.NextMs)
}
