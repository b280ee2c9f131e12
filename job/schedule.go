package job

import (
	"strconv"
	"strings"
	"time"

	"tarry/job/jobpb"
)

// CheckScheduleName checks the name of a schedule. The ids of its jobs begin with
// it, and it can stand inside a JSON string as it is.
func (l *Limits) CheckScheduleName(field, name string) error {
	switch {
	case len(name) > l.MaxScheduleNameBytes:
		return Invalid(field, "has %d bytes; the limit is %d", len(name), l.MaxScheduleNameBytes)
	case strings.ContainsAny(name, "\"\\{}"):
		return Invalid(field, "is %.40q; quotes, backslashes and braces are not allowed", name)
	case name == "preview":
		return Invalid(field, "is %q, which is kept for the call of that name", name)
	}
	return l.CheckID(field, name)
}

// CheckSchedule checks all of a schedule but its spec, its zone and what an add is
// checked for. The fields in errors are those of the HTTP API.
func (l *Limits) CheckSchedule(s *jobpb.Schedule) error {
	j := s.Job
	switch {
	case j == nil:
		return Invalid("job", "is missing")
	case j.Id != "" || j.DelayMs != 0 || j.DueMs != 0 || j.IfExists != 0 || j.Condition != nil:
		return Invalid("job", "of a schedule has no id, delay, due instant or condition of its own")
	case len(j.Body) > l.MaxScheduleBodyBytes:
		return FieldErrorf(CodeTooLarge, "body", "has %d bytes; the limit of a schedule is %d", len(j.Body), l.MaxScheduleBodyBytes)
	case s.JitterMs < 0 || s.JitterMs > l.MaxJitter.Milliseconds():
		return Invalid("jitter", "is %g s; it must be between 0 and %d s", float64(s.JitterMs)/1000, int64(l.MaxJitter.Seconds()))
	case s.Overlap < 0 || s.Overlap > jobpb.Overlap_OVERLAP_SKIP:
		return Invalid("overlap", "is %d; this release knows only 0 and 1", s.Overlap)
	case s.Missed < 0 || s.Missed > jobpb.Missed_MISSED_ALL:
		return Invalid("missed", "is %d; this release knows only 0 to 2", s.Missed)
	case s.Missed != jobpb.Missed_MISSED_ALL && s.MissedMax != 0:
		return Invalid("missed_max", "is %d; it goes with missed \"all\" only", s.MissedMax)
	case s.Missed == jobpb.Missed_MISSED_ALL && (s.MissedMax < 1 || s.MissedMax > l.MaxScheduleRuns):
		return Invalid("missed_max", "is %d; it must be between 1 and %d", s.MissedMax, l.MaxScheduleRuns)
	case s.MissedAfterMs < 1 || s.MissedAfterMs > l.MaxMissedAfter.Milliseconds():
		return Invalid("missed_after", "is %g s; it must be between 0.001 and %d s", float64(s.MissedAfterMs)/1000, int64(l.MaxMissedAfter.Seconds()))
	}
	return l.CheckTimes(s)
}

// CheckTimes checks the part of a schedule that says when it runs, as far as that
// needs no cron parser and no table of time zones.
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

// RunID is the id of the job of a scheduled run, the same whoever makes it. A run
// out of turn has its number in it, else that is 0: two of them may be asked for in
// one millisecond.
func RunID(schedule string, plannedMS int64, number uint64) string {
	id := schedule + "@" + FormatInstant(plannedMS, 0)
	if number != 0 {
		id += "-now" + strconv.FormatUint(number, 10)
	}
	return id
}

// KeyedRunID is the id of the job of a run out of turn that its caller has given a
// key. No instant begins so, so no planned run has the same.
func KeyedRunID(schedule, key string) string { return schedule + "@now-" + key }

// CheckRunKey checks the key of a run out of turn. It becomes a part of an id.
func (l *Limits) CheckRunKey(field, key string) error {
	if len(key) > l.MaxRunKeyBytes {
		return Invalid(field, "has %d bytes; the limit is %d", len(key), l.MaxRunKeyBytes)
	}
	return l.CheckID(field, key)
}

// FormatInstant writes Unix milliseconds as RFC 3339, in a zone that many seconds
// from UTC, with a fraction only where there is one.
func FormatInstant(ms int64, offset int32) string {
	t := time.UnixMilli(ms).UTC()
	if offset != 0 {
		t = t.In(time.FixedZone("", int(offset)))
	}
	return t.Format("2006-01-02T15:04:05.999Z07:00")
}

// RunBody is the body of a scheduled run: the schedule's, with {{planned}} for the
// planned instant in the schedule's zone, {{planned_ms}} for the same in Unix
// milliseconds, {{name}} for the schedule's name and {{run}} for the number of the
// run. All of them can stand inside a JSON string.
func RunBody(body []byte, schedule string, run *jobpb.ScheduledRun, number uint64) []byte {
	if !strings.Contains(string(body), "{{") {
		return body
	}
	return []byte(strings.NewReplacer(
		"{{planned}}", FormatInstant(run.PlannedMs, run.OffsetS),
		"{{planned_ms}}", strconv.FormatInt(run.PlannedMs, 10),
		"{{name}}", schedule,
		"{{run}}", strconv.FormatUint(number, 10),
	).Replace(string(body)))
}
