package schedule

import (
	"strings"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// minEvery is the shortest interval of @every, the same as cron's.
	minEvery = time.Second

	// lastMS is the last time that is planned, the end of the year 9999, in Unix
	// milliseconds.
	lastMS = 253402300799000
)

// Timetable computes the run times of one schedule. It is immutable and safe for
// concurrent use.
type Timetable struct {
	loc     *time.Location
	every   int64 // milliseconds; 0: use wall
	wall    *wall
	firstMS int64 // with every: the first run, from which the others are counted
	startMS int64 // nothing is planned before
	endMS   int64 // nor after; 0: without end
}

// New parses a schedule's spec and zone. @every counts from anchorMS when the schedule
// has no start. Errors name the field.
func New(s *jobpb.Schedule, anchorMS int64) (*Timetable, error) {
	loc, err := zone(s.Zone)
	if err != nil {
		return nil, err
	}
	t := &Timetable{loc: loc, startMS: s.StartMs, endMS: s.EndMs}
	interval, isEvery := strings.CutPrefix(s.Spec, "@every")
	if !isEvery {
		t.wall, err = parseWall(s.Spec, loc)
		return t, err
	}
	d, err := time.ParseDuration(strings.TrimSpace(interval))
	if err != nil {
		return nil, job.Invalid("spec", "is %.60q; behind @every it takes a length of time such as 90s or 1h30m, of at most %d s", s.Spec, int64(job.MaxDelay.Seconds()))
	}
	if d < minEvery || d > job.MaxDelay || d%time.Millisecond != 0 {
		return nil, job.Invalid("spec", "is %.60q; the interval must be between %s and %d s, in whole milliseconds", s.Spec, minEvery, int64(job.MaxDelay.Seconds()))
	}
	t.every = d.Milliseconds()
	t.firstMS = anchorMS + t.every
	if s.StartMs != 0 {
		t.firstMS = s.StartMs
	}
	return t, nil
}

// Next returns the first run after afterMS, in Unix milliseconds; 0 when there is none.
func (t *Timetable) Next(afterMS int64) int64 {
	afterMS = max(afterMS, t.startMS-1)
	var next int64
	switch {
	case t.every == 0:
		at := t.wall.next(time.UnixMilli(afterMS).In(t.loc))
		if at.IsZero() {
			return 0
		}
		next = at.UnixMilli()
	case afterMS < t.firstMS:
		next = t.firstMS
	default:
		next = t.firstMS + ((afterMS-t.firstMS)/t.every+1)*t.every
	}
	if next > lastMS || t.endMS != 0 && next > t.endMS {
		return 0
	}
	return next
}

// Last returns the last run at or before ms, in Unix milliseconds; 0 when there is none.
func (t *Timetable) Last(ms int64) int64 {
	list := t.before(ms+1, 1)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1]
}

// List returns the first n runs after afterMS, or as many as there are.
func (t *Timetable) List(afterMS int64, n int) []int64 {
	var list []int64
	for len(list) < n {
		if afterMS = t.Next(afterMS); afterMS == 0 {
			break
		}
		list = append(list, afterMS)
	}
	return list
}

// OffsetOf returns the zone's offset from UTC at a time, in seconds.
func (t *Timetable) OffsetOf(ms int64) int32 {
	_, offset := time.UnixMilli(ms).In(t.loc).Zone()
	return int32(offset)
}

// Check parses a schedule as New does, and rejects one that has no run after nowMS.
// It also rejects what older releases accepted and nodes or users may take for different times.
func Check(s *jobpb.Schedule, nowMS int64) error {
	t, err := New(s, nowMS)
	if err == nil {
		err = checkZoneName(s.Zone)
	}
	if err == nil {
		err = checkDays(s.Spec)
	}
	if err != nil {
		return err
	}
	if t.Next(nowMS) != 0 {
		return nil
	}
	if s.EndMs != 0 {
		return job.Invalid("end", "is %s; spec %.60q has no run before it", time.UnixMilli(s.EndMs).UTC().Format(time.RFC3339), s.Spec)
	}
	return job.Invalid("spec", "is %.60q; it never comes due", s.Spec)
}
