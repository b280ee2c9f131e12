package cli

import (
	"fmt"
	"time"
)

// Clock shows instants: relative to now, or as timestamps.
type Clock struct {
	Now      func() time.Time
	Absolute bool
}

// When shows an instant.
func (c Clock) When(at time.Time) string {
	if c.Absolute || at.IsZero() {
		return Timestamp(at)
	}
	switch d := at.Sub(c.Now()).Round(time.Second); {
	case d > 0:
		return "in " + length(d)
	case d < 0:
		return length(-d) + " ago"
	}
	return "now"
}

// Left shows for how long something goes on that ends at an instant.
func (c Clock) Left(until time.Time) string {
	if d := until.Sub(c.Now()).Round(time.Second); d > 0 {
		return "for another " + length(d)
	}
	return "until now"
}

// Since shows for how long something has been so that began at an instant.
func (c Clock) Since(at time.Time) string {
	if d := c.Now().Sub(at).Round(time.Second); d > 0 {
		return "for " + length(d)
	}
	return "since now"
}

// Timestamp shows an instant in full.
func Timestamp(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

// length shows a time of a second or more with its two largest units.
func length(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		size, next time.Duration
		name, rest string
	}{{day, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "m"}, {time.Minute, time.Second, "m", "s"}} {
		if d < u.size {
			continue
		}
		if rest := d % u.size / u.next; rest > 0 && d < 10*day {
			return fmt.Sprintf("%d%s%d%s", d/u.size, u.name, rest, u.rest)
		}
		return fmt.Sprintf("%d%s", d/u.size, u.name)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
