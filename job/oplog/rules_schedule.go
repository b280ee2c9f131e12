package oplog

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// The rules of operations on schedules; see CheckOp. Package schedule checks the content of
// a spec and a zone.

func checkPutSchedule(l *job.Limits, op *jobpb.PutSchedule) error {
	if err := l.CheckScheduleName("name", op.Name); err != nil {
		return err
	}
	if op.Schedule == nil {
		return nil
	}
	if err := checkSchedule(l, op.Schedule); err != nil {
		return err
	}
	if err := checkAdd(l, op.Schedule.Job); err != nil {
		return job.Under("job", err)
	}
	return nil
}

// checkSchedule checks a schedule, except the content of its spec and its zone.
func checkSchedule(l *job.Limits, s *jobpb.Schedule) error {
	j := s.Job
	switch {
	case j == nil:
		return job.Invalid("job", "is missing; it takes what an add takes, but for the fields that say when, and id")
	case j.Id != "" || j.DelayMs != 0 || j.DueMs != 0 || j.IfExists != 0 || j.Condition != nil:
		return job.Invalid("job", "of a schedule has no id, delay, due instant or condition of its own")
	case len(j.Body) > l.MaxScheduleBodyBytes:
		return job.FieldErrorf(job.CodeTooLarge, "job.body", "has %d bytes; the limit of a schedule is %d", len(j.Body), l.MaxScheduleBodyBytes)
	case s.Overlap < 0 || s.Overlap > jobpb.Overlap_OVERLAP_SKIP:
		return job.Invalid("overlap", "is %d; this release knows only 0 and 1", s.Overlap)
	case s.Missed < 0 || s.Missed > jobpb.Missed_MISSED_ALL:
		return job.Invalid("missed", "is %d; this release knows only 0 to 2", s.Missed)
	case s.Missed != jobpb.Missed_MISSED_ALL && s.MissedMax != 0:
		return job.Invalid("missed_max", "goes with \"missed\":\"all\" only")
	}
	if s.Missed == jobpb.Missed_MISSED_ALL {
		if err := job.Within("missed_max", int64(s.MissedMax), 1, int64(l.MaxScheduleRuns)); err != nil {
			return err
		}
	}
	if err := job.WithinSeconds("jitter", s.JitterMs, 0, l.MaxJitter); err != nil {
		return err
	}
	if err := job.WithinSeconds("missed_after", s.MissedAfterMs, 1, l.MaxMissedAfter); err != nil {
		return err
	}
	return l.CheckTimes(s)
}

// maxOffsetS is more than any zone's offset from UTC, in seconds.
const maxOffsetS = 24 * 60 * 60

// checkFireSchedule checks that instants grow and that the next is behind them. The state
// machine checks that none is ahead of the clock.
func checkFireSchedule(l *job.Limits, op *jobpb.FireSchedule) error {
	switch {
	case len(op.Runs) > int(l.MaxScheduleRuns):
		return job.Invalid("runs", "has %d items; the limit is %d", len(op.Runs), l.MaxScheduleRuns)
	case slices.ContainsFunc(op.Runs, func(run *jobpb.ScheduledRun) bool { return run.OffsetS < -maxOffsetS || run.OffsetS > maxOffsetS }):
		return job.Invalid("runs", "has a zone that is a day away from UTC")
	case op.Now && (len(op.Runs) != 1 || op.Missed != 0 || op.Trouble != ""):
		return job.Invalid("now", "goes with one run, and with nothing else")
	case op.Key != "" && !op.Now:
		return job.Invalid("key", "goes with a run out of turn only")
	case op.Trouble != "" && (len(op.Runs) > 0 || op.Missed > 0 || len(op.Trouble) > l.MaxReasonBytes):
		return job.Invalid("trouble", "goes with no run and has at most %d bytes", l.MaxReasonBytes)
	case op.ExpectNextMs == 0 && !op.Now && (len(op.Runs) > 0 || op.Missed > 0):
		return job.Invalid("runs", "has one before the first instant is worked out")
	}
	if op.Key != "" {
		if err := l.CheckRunKey("key", op.Key); err != nil {
			return err
		}
	}
	if op.Now {
		return nil // its run has no planned instant
	}
	last := op.ExpectNextMs
	if op.Missed > 0 {
		if op.LastMissedMs < last || op.LastMissedMs > job.MaxInstantMS {
			return job.Invalid("missed", "has instants that are out of order")
		}
		last = op.LastMissedMs + 1
	}
	for _, run := range op.Runs {
		if run.PlannedMs < max(last, 1) || run.PlannedMs > job.MaxInstantMS {
			return job.Invalid("runs", "has one that is out of order")
		}
		last = run.PlannedMs + 1
	}
	if op.NextMs != 0 && (op.NextMs < last || op.NextMs > job.MaxInstantMS) {
		return job.Invalid("next", "is not behind the last run")
	}
	return nil
}
