package job

import (
	"strings"

	"tarry/job/jobpb"
)

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
