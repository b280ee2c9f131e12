package job

import (
	"slices"
	"strings"

	"tarry/job/jobpb"
)

// The rules of operations on schedules; see CheckOp. Package schedule checks the content of
// a spec and a zone.

func (l *Limits) checkPutSchedule(op *jobpb.PutSchedule) error {
	if err := l.CheckScheduleName("name", op.Name); err != nil {
		return err
	}
	if op.Schedule == nil {
		return nil
	}
	if err := l.checkSchedule(op.Schedule); err != nil {
		return err
	}
	if err := l.checkAdd(op.Schedule.Job); err != nil {
		return Under("job", err)
	}
	return nil
}

// CheckScheduleName checks the name of a schedule. The ids of its jobs begin with it, and
// inside a JSON string it needs no quoting.
func (l *Limits) CheckScheduleName(field, name string) error {
	switch {
	case len(name) > l.MaxScheduleNameBytes:
		return Invalid(field, "has %d bytes; the limit is %d", len(name), l.MaxScheduleNameBytes)
	case strings.ContainsAny(name, "\"\\{}"):
		return Invalid(field, "is %.40q; quotes, backslashes and braces are not allowed", name)
	case name == "preview":
		return Invalid(field, "is %q, which is reserved for the call of that name", name)
	}
	return l.CheckID(field, name)
}

// checkSchedule checks a schedule, except the content of its spec and its zone.
func (l *Limits) checkSchedule(s *jobpb.Schedule) error {
	j := s.Job
	switch {
	case j == nil:
		return Invalid("job", "is missing; it takes what an add takes, but for the fields that say when, and id")
	case j.Id != "" || j.DelayMs != 0 || j.DueMs != 0 || j.IfExists != 0 || j.Condition != nil:
		return Invalid("job", "of a schedule has no id, delay, due instant or condition of its own")
	case len(j.Body) > l.MaxScheduleBodyBytes:
		return FieldErrorf(CodeTooLarge, "job.body", "has %d bytes; the limit of a schedule is %d", len(j.Body), l.MaxScheduleBodyBytes)
	case s.Overlap < 0 || s.Overlap > jobpb.Overlap_OVERLAP_SKIP:
		return Invalid("overlap", "is %d; this release knows only 0 and 1", s.Overlap)
	case s.Missed < 0 || s.Missed > jobpb.Missed_MISSED_ALL:
		return Invalid("missed", "is %d; this release knows only 0 to 2", s.Missed)
	case s.Missed != jobpb.Missed_MISSED_ALL && s.MissedMax != 0:
		return Invalid("missed_max", "goes with \"missed\":\"all\" only")
	}
	if s.Missed == jobpb.Missed_MISSED_ALL {
		if err := Within("missed_max", int64(s.MissedMax), 1, int64(l.MaxScheduleRuns)); err != nil {
			return err
		}
	}
	if err := withinSeconds("jitter", s.JitterMs, 0, l.MaxJitter); err != nil {
		return err
	}
	if err := withinSeconds("missed_after", s.MissedAfterMs, 1, l.MaxMissedAfter); err != nil {
		return err
	}
	return l.CheckTimes(s)
}

// CheckTimes checks when a schedule runs, as far as that needs no cron parser and no table
// of time zones.
func (l *Limits) CheckTimes(s *jobpb.Schedule) error {
	switch {
	case s.Spec == "" || len(s.Spec) > l.MaxSpecBytes:
		return Invalid("spec", "has %d bytes; it takes 1 to %d", len(s.Spec), l.MaxSpecBytes)
	case s.Zone == "" || len(s.Zone) > l.MaxSpecBytes:
		return Invalid("zone", "has %d bytes; it takes 1 to %d", len(s.Zone), l.MaxSpecBytes)
	case s.StartMs < 0 || s.EndMs < 0:
		return Invalid("start", "and end must not lie before 1970")
	case s.EndMs != 0 && s.EndMs < s.StartMs:
		return Invalid("end", "lies before start")
	}
	return nil
}

// CheckRunKey checks the key of a run that is started on request. It becomes part of an id.
func (l *Limits) CheckRunKey(field, key string) error {
	if len(key) > l.MaxRunKeyBytes {
		return Invalid(field, "has %d bytes; the limit is %d", len(key), l.MaxRunKeyBytes)
	}
	return l.CheckID(field, key)
}

const (
	// MaxInstantMS is the end of the year 9999, the last instant of the queue.
	MaxInstantMS = 253402300799999

	// maxOffsetS is more than any zone's offset from UTC, in seconds.
	maxOffsetS = 24 * 60 * 60
)

// checkFireSchedule checks that instants grow and that the next is behind them. The state
// machine checks that none is ahead of the clock.
func (l *Limits) checkFireSchedule(op *jobpb.FireSchedule) error {
	switch {
	case len(op.Runs) > int(l.MaxScheduleRuns):
		return Invalid("runs", "has %d items; the limit is %d", len(op.Runs), l.MaxScheduleRuns)
	case slices.ContainsFunc(op.Runs, func(run *jobpb.ScheduledRun) bool { return run.OffsetS < -maxOffsetS || run.OffsetS > maxOffsetS }):
		return Invalid("runs", "has a zone that is a day away from UTC")
	case op.Now && (len(op.Runs) != 1 || op.Missed != 0 || op.Trouble != ""):
		return Invalid("now", "goes with one run, and with nothing else")
	case op.Key != "" && !op.Now:
		return Invalid("key", "goes with a run out of turn only")
	case op.Trouble != "" && (len(op.Runs) > 0 || op.Missed > 0 || len(op.Trouble) > l.MaxReasonBytes):
		return Invalid("trouble", "goes with no run and has at most %d bytes", l.MaxReasonBytes)
	case op.ExpectNextMs == 0 && !op.Now && (len(op.Runs) > 0 || op.Missed > 0):
		return Invalid("runs", "has one before the first instant is worked out")
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
		if op.LastMissedMs < last || op.LastMissedMs > MaxInstantMS {
			return Invalid("missed", "has instants that are out of order")
		}
		last = op.LastMissedMs + 1
	}
	for _, run := range op.Runs {
		if run.PlannedMs < max(last, 1) || run.PlannedMs > MaxInstantMS {
			return Invalid("runs", "has one that is out of order")
		}
		last = run.PlannedMs + 1
	}
	if op.NextMs != 0 && (op.NextMs < last || op.NextMs > MaxInstantMS) {
		return Invalid("next", "is not behind the last run")
	}
	return nil
}
