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
