package job

import (
	"strconv"
	"strings"
	"time"

	"tarry/job/jobpb"
)

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
