package job

import (
	"strconv"
	"strings"
	"time"

	"tarry/job/jobpb"
)

// RunID returns the id of the job of a scheduled run, which depends on the arguments alone.
// number is that of a run that was started on request, because two of them may have the
// same instant; else 0.
func RunID(schedule string, plannedMS int64, number uint64) string {
	id := schedule + "@" + FormatInstant(plannedMS, 0)
	if number != 0 {
		id += "-now" + strconv.FormatUint(number, 10)
	}
	return id
}

// KeyedRunID returns the id of the job of a run that was started on request with a key. No
// instant begins like that, so no planned run has the same id.
func KeyedRunID(schedule, key string) string { return schedule + "@now-" + key }

// FormatInstant returns Unix milliseconds as RFC 3339, in a zone offset seconds from UTC,
// with a fraction only if there is one.
func FormatInstant(ms int64, offset int32) string {
	t := time.UnixMilli(ms).UTC()
	if offset != 0 {
		t = t.In(time.FixedZone("", int(offset)))
	}
	return t.Format("2006-01-02T15:04:05.999Z07:00")
}

// RunBody returns the body of a scheduled run: the schedule's, with {{planned}} replaced by
// the planned instant in the schedule's zone, {{planned_ms}} by the same in Unix
// milliseconds, {{name}} by the schedule's name and {{run}} by the number of the run. None
// needs quoting inside a JSON string.
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

// The rules of schedules. Package schedule checks the content of a spec and a zone.

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

// MaxInstantMS is the end of the year 9999, the last instant of the queue.
const MaxInstantMS = 253402300799999
