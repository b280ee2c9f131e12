package schedule

import (
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"tarry/job"
)

// parser takes five fields, or six with seconds in front, and names like @daily. A
// day matches when the day of the month or the day of the week does, if both are
// restricted. Rare combinations, such as a 29th of February on a Monday, are looked
// for over forty years.
var parser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor | cron.Extended | cron.DowOrDom).WithMaxSearchYears(40)

// wall is a cron expression in a zone. Clocks are set forward and back, so a time
// on the clock is no instant by itself:
//
//   - An expression whose hour field begins with * follows the time that passes: a
//     time that the clock skips is not missed by anyone, and one that it shows twice
//     counts twice. So "every ten minutes" stays every ten minutes.
//   - Any other names times of the day, each of which runs once a day: one that the
//     clock skips runs at the first instant after, one that it shows twice runs the
//     first time.
type wall struct {
	expr    cron.Schedule
	loc     *time.Location
	follows bool // the time that passes
}

// fieldNames are those of a six-field expression.
var fieldNames = [...]string{"second", "minute", "hour", "day of month", "month", "day of week"}

func parseWall(spec string, loc *time.Location) (*wall, error) {
	fields := strings.Fields(spec)
	named := len(fields) == 1 && strings.HasPrefix(spec, "@")
	if !named && len(fields) != 5 && len(fields) != 6 {
		return nil, job.Invalid("spec", "is %.60q with %d fields; it takes a cron expression of 5, or 6 with seconds in front, a name such as @daily, or @every 90s", spec, len(fields))
	}
	if strings.Contains(spec, "=") { // the parser's own way to name a zone
		return nil, job.Invalid("spec", "is %.60q; the time zone goes into the field zone", spec)
	}
	expr, err := parser.Parse(spec)
	switch {
	case err != nil && named:
		return nil, job.Invalid("spec", "is %.60q; the names are @yearly, @monthly, @weekly, @daily and @hourly", spec)
	case err != nil:
		return nil, explain(spec, fields, err)
	}
	w := &wall{expr: expr, loc: loc, follows: spec == "@hourly"}
	if !named {
		w.follows = strings.HasPrefix(fields[len(fields)-4], "*")
	}
	return w, nil
}

// explain finds the field at fault among five or six, by reading each one alone.
func explain(spec string, fields []string, err error) error {
	first := len(fieldNames) - len(fields)
	position := 0
	for i, field := range fields {
		position += strings.Index(spec[position:], field)
		alone := strings.Fields("0 * * * * *")
		alone[first+i] = field
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			return job.Invalid("spec", "has %.40q for the %s, at byte %d: %s", field, fieldNames[first+i], position+1, brief(err))
		}
		position += len(field)
	}
	return job.Invalid("spec", "is %.60q: %s", spec, brief(err))
}

// brief keeps a foreign message, which may repeat what was sent, short.
func brief(err error) string { return fmt.Sprintf("%.120s", err) }

// next is the first instant after t, which is in the zone; zero when there is none.
// It goes from one change of the zone's offset to the next.
func (w *wall) next(t time.Time) time.Time {
	from, inclusive := onClock(t), false
	for t.Year() < 10_000 {
		start, end := bounds(t)
		if shown := shownBefore(start); !w.follows && from.Before(shown) {
			from, inclusive = shown, true // the clock was set back: these times had their turn
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

// bounds tells since when and until when the offset at t is in force, or some
// earlier end. The standard library takes every year for one of 365 days when it goes
// beyond the table of a zone, and so gives an end before t on the last day of 2040.
func bounds(t time.Time) (start, end time.Time) {
	start, end = t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = t.Add(24 * time.Hour)
	}
	return start, end
}

// match is the next time on the clock that the expression names.
func (w *wall) match(from time.Time, inclusive bool) time.Time {
	if inclusive {
		from = from.Add(-time.Nanosecond)
	}
	return w.expr.Next(from)
}

// onClock is what a clock in t's zone shows at t, as if it were UTC.
func onClock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// shownBefore is the time up to which the clock came before its offset changed at
// start; zero when start is the beginning of time.
func shownBefore(start time.Time) time.Time {
	if start.IsZero() {
		return time.Time{}
	}
	_, before := start.Add(-time.Nanosecond).Zone()
	return start.UTC().Add(time.Duration(before) * time.Second)
}
