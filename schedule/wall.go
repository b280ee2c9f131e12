package schedule

import (
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"tarry/job"
)

// parser takes five fields, or six with seconds in front, and names like @daily. A day
// matches when the day of the month or the day of the week does, if both are restricted.
// The search for rare combinations, such as a 29th of February on a Monday, covers forty
// years.
var parser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor | cron.Extended | cron.DowOrDom).WithMaxSearchYears(40)

// wall is a cron expression in a zone. Clocks are set forward and back, so a wall-clock
// time can occur twice or not at all:
//
//   - An expression whose hour field begins with * follows elapsed time: a
//     time that the clock skips is not missed by anyone, and one that it shows twice
//     counts twice. So "every ten minutes" stays every ten minutes.
//   - Any other expression names times of day, each of which runs once a day: one that the
//     clock skips runs at the first time after, one that it shows twice runs the
//     first time.
type wall struct {
	expr    cron.Schedule
	loc     *time.Location
	follows bool // elapsed time rather than times of day
}

func parseWall(spec string, loc *time.Location) (*wall, error) {
	fields := strings.Fields(spec)
	named := len(fields) == 1 && strings.HasPrefix(spec, "@")
	if !named && len(fields) != 5 && len(fields) != 6 {
		return nil, job.Invalid("spec", "is %.60q with %d fields; it takes a cron expression of 5, or 6 with seconds in front, a name such as @daily, or @every 90s", spec, len(fields))
	}
	if strings.Contains(spec, "=") { // the parser's own syntax for a zone
		return nil, job.Invalid("spec", "is %.60q; the time zone goes into the field zone", spec)
	}
	expr, err := parser.Parse(spellOut(spec, fields))
	switch {
	case err != nil && named:
		return nil, job.Invalid("spec", "is %.60q; the names are @yearly, @monthly, @weekly, @daily and @hourly", spec)
	case err != nil:
		return nil, explain(spec, fields)
	}
	w := &wall{expr: expr, loc: loc, follows: spec == "@hourly"}
	if !named {
		w.follows = strings.HasPrefix(fields[len(fields)-4], "*")
	}
	return w, nil
}

// next returns the first time after t, which is in the zone; zero when there is none. It
// searches from one change of the zone's offset to the next.
func (w *wall) next(t time.Time) time.Time {
	from, inclusive := onClock(t), false
	for t.Year() < 10_000 {
		start, end := bounds(t)
		if shown := shownBefore(start); !w.follows && from.Before(shown) {
			from, inclusive = shown, true // the clock was set back: these times have run
		}
		match := w.match(from, inclusive)
		if match.IsZero() {
			return time.Time{}
		}
		_, offset := t.Zone()
		at := match.Add(-time.Duration(offset) * time.Second).In(w.loc)
		if end.IsZero() || at.Before(end) {
			return at
		}
		if !w.follows && match.Before(onClock(end)) {
			return end // the clock skips it
		}
		t, from, inclusive = end, onClock(end), true
	}
	return time.Time{}
}

// bounds returns since when and until when the offset at t is in force, or some earlier
// end. Past the end of a zone's table, the standard library assumes years of 365 days,
// and so returns an end before t on the last day of 2040.
func bounds(t time.Time) (start, end time.Time) {
	start, end = t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = t.Add(24 * time.Hour)
	}
	return start, end
}

// match returns the next wall-clock time that matches the expression.
func (w *wall) match(from time.Time, inclusive bool) time.Time {
	if inclusive {
		from = from.Add(-time.Nanosecond)
	}
	return w.expr.Next(from)
}

// onClock returns the wall-clock time in t's zone at t, as if it were UTC.
func onClock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// shownBefore returns the wall-clock time just before the offset changed at start; zero
// when start is zero.
func shownBefore(start time.Time) time.Time {
	if start.IsZero() {
		return time.Time{}
	}
	_, before := start.Add(-time.Nanosecond).Zone()
	return start.UTC().Add(time.Duration(before) * time.Second)
}
