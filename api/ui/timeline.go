package ui

import (
	"fmt"
	"slices"
	"time"

	"tarry/client"
)

// moment is one instant in the life of a job.
type moment struct {
	At     time.Time
	Event  string // "added"
	Text   string // by whom, why
	Future bool   // it is still to come
}

// timelineOf returns the life of a job, the earliest first: what its history has, or if its
// topic keeps none, what the job itself says. So many events after the first were dropped.
// What is still to come is at the end.
func timelineOf(j *client.Job, history []client.Event, dropped uint64, now time.Time) []moment {
	var list []moment
	add := func(at time.Time, event, text string) {
		if !at.IsZero() {
			list = append(list, moment{at, event, text, at.After(now)})
		}
	}
	if kept(history) {
		for i, e := range history {
			add(e.At, e.Event, eventText(e))
			if fellDue(history, i) && (i > 0 || dropped == 0) {
				add(e.DueAt, "due", "")
			}
		}
	} else {
		add(j.CreatedAt, "added", "")
		if ended := latest(j.DiedAt, j.FinishedAt, j.DeletedAt); !j.DueAt.After(ended) {
			add(j.DueAt, "due", "")
		}
		add(j.DiedAt, "dead", j.Reason)
		add(j.FinishedAt, "finished", "")
		add(j.DeletedAt, "deleted", "")
		if j.State == "reserved" {
			add(j.ModifiedAt, "reserved or touched", byConsumer(j.ReservedBy))
		}
	}
	switch j.State {
	case "delayed", "ready", "reserved":
		if !slices.ContainsFunc(list, func(m moment) bool { return m.Event == "due" && m.At.Equal(j.DueAt) }) {
			add(j.DueAt, "due", "")
		}
		add(j.ReservedUntil, "lease ends", byConsumer(j.ReservedBy))
		add(j.ExpiresAt, "expires", "")
	case "finished", "deleted":
		add(j.RetainedUntil, "removed", "kept until then")
	}
	slices.SortStableFunc(list, func(a, b moment) int { return a.At.Compare(b.At) })
	return list
}

// fellDue reports whether the job became due after an event of its history, before the next
// one. Falling due is no event.
func fellDue(history []client.Event, i int) bool {
	e := history[i]
	waits := e.Event == "added" || e.State == "delayed"
	return waits && !e.DueAt.IsZero() && i+1 < len(history) && !history[i+1].At.Before(e.DueAt)
}

func latest(list ...time.Time) time.Time { return slices.MaxFunc(list, time.Time.Compare) }

// kept reports whether a history has more than the add, which is there for every job.
func kept(history []client.Event) bool { return len(history) > 1 }

func byConsumer(name string) string {
	if name == "" {
		return ""
	}
	return "by " + name
}

// eventText returns who did it, at which attempt, and why.
func eventText(e client.Event) string {
	text := byConsumer(e.Consumer)
	if e.Attempt > 0 {
		text = joined(text, fmt.Sprintf("attempt %d", e.Attempt), ", ")
	}
	return joined(text, e.Reason, ": ")
}

// joined puts a separator between two texts unless one is empty.
func joined(a, b, separator string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + separator + b
}
