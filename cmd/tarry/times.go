package main

import (
	"fmt"
	"time"
)

// clock shows instants: relative to now, or as timestamps.
type clock struct {
	now      func() time.Time
	absolute bool
}

// when shows an instant.
func (c clock) when(at time.Time) string {
	if c.absolute || at.IsZero() {
		return timestamp(at)
	}
	switch d := at.Sub(c.now()).Round(time.Second); {
	case d > 0:
		return "in " + length(d)
	case d < 0:
		return length(-d) + " ago"
	}
	return "now"
}

// left shows for how long something goes on that ends at an instant.
func (c clock) left(until time.Time) string {
	if d := until.Sub(c.now()).Round(time.Second); d > 0 {
		return "for another " + length(d)
	}
	return "until now"
}

// since shows for how long something has been so that began at an instant.
func (c clock) since(at time.Time) string {
	if d := c.now().Sub(at).Round(time.Second); d > 0 {
		return "for " + length(d)
	}
	return "since now"
}

// timestamp shows an instant in full.
func timestamp(at time.Time) string {
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
