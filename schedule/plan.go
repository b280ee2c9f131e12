package schedule

import (
	"tarry/job/jobpb"
)

// Plan returns what to do with a schedule that is due at nowMS: which runs to start, at
// most maxRuns, which are missed, and when the next one is due.
func Plan(s *jobpb.ScheduleInfo, nowMS int64, maxRuns int) *jobpb.FireSchedule {
	fire := &jobpb.FireSchedule{Name: s.Name, Revision: s.State.Revision, ExpectNextMs: s.State.NextMs}
	t, err := New(s.Schedule, s.State.AnchorMs)
	if err != nil {
		fire.Trouble = err.Error()
		return fire
	}
	if s.State.Unplanned {
		fire.NextMs = t.Next(s.State.ChangedMs)
		return fire
	}
	next := s.State.NextMs
	late := nowMS - s.Schedule.MissedAfterMs // runs planned before are missed
	var runs []int64
	if next < late {
		runs, fire.Missed, fire.LastMissedMs = t.splitMissed(next, late, s.Schedule)
		next = t.Next(late - 1)
	}
	for next != 0 && next <= nowMS && len(runs) < maxRuns {
		runs = append(runs, next)
		next = t.Next(next)
	}
	if len(runs) > maxRuns {
		runs, next = runs[:maxRuns], runs[maxRuns] // the rest in another round
	}
	for _, planned := range runs {
		fire.Runs = append(fire.Runs, &jobpb.ScheduledRun{PlannedMs: planned, OffsetS: t.OffsetOf(planned)})
	}
	fire.NextMs = next
	return fire
}

// splitMissed divides the runs from first to before late into those that start late, which
// are the latest, and the missed ones: their number, and the latest of them.
func (t *Timetable) splitMissed(first, late int64, s *jobpb.Schedule) (runs []int64, missed uint64, lastMissed int64) {
	keep := 0
	switch s.Missed {
	case jobpb.Missed_MISSED_ONE:
		keep = 1
	case jobpb.Missed_MISSED_ALL:
		keep = int(s.MissedMax)
	}
	count := t.count(first, late)
	latest := t.before(late, int(min(uint64(keep+1), count)))
	kept := min(keep, int(count), len(latest))
	if missed = count - uint64(kept); missed > 0 {
		lastMissed = latest[len(latest)-kept-1]
	}
	return latest[len(latest)-kept:], missed, lastMissed
}

// before returns at least the last n runs before a time, which must exist. It doubles the
// period that it searches until there are enough.
func (t *Timetable) before(late int64, n int) []int64 {
	for stretch := int64(60_000); ; stretch *= 2 {
		var list []int64
		for next := t.Next(late - stretch - 1); next != 0 && next < late; next = t.Next(next) {
			list = append(list, next)
		}
		if len(list) >= n || stretch > late {
			return list
		}
	}
}
