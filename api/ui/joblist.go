package ui

import (
	"net/url"
	"strconv"
	"time"

	"tarry/client"
)

// jobsPage is how many jobs a page has.
const jobsPage = 50

// jobList is a page of jobs, as the component "jobs" shows them.
type jobList struct {
	Caption string
	Topic   string // of all of them; empty: each has its own
	Columns []column
	Jobs    []client.Job
	Actions []jobsVerb // on each job and on those that are selected
	All     []allOf    // on all jobs of the topic and the state in Fields
	Fields  url.Values // of the form
	Empty   emptyState // in place of no jobs
	Pager   pager
}

// jobsView is what the component "jobs" is given.
type jobsView struct {
	View *view
	List *jobList
}

// list reads a page of jobs from a path of the API. The parameter cursor of the request says
// where it begins. pairs are the query of this page, for the pages that follow.
func (q *request) list(l *jobList, path string, query url.Values, pairs ...string) error {
	query.Set("max", strconv.Itoa(jobsPage))
	if cursor := q.value("cursor"); cursor != "" {
		query.Set("cursor", cursor)
		l.Pager.First = address(q.page.path, pairs...)
	}
	var page struct {
		Jobs []client.Job `json:"jobs"`
		Next string       `json:"next"`
	}
	if err := q.read(path, query, &page); err != nil {
		return err
	}
	l.Jobs = page.Jobs
	if page.Next != "" {
		l.Pager.Next = address(q.page.path, append(pairs, "cursor", page.Next)...)
	}
	return nil
}

// column is a column of a table of jobs; all have the id first.
type column struct {
	Name   string
	Number bool // aligned to the right
	of     func(client.Job) cell
}

// Cell returns what the column shows of a job.
func (c column) Cell(j client.Job) cell { return c.of(j) }

// cell is what is shown in a column: one of an instant, the name of a topic, and
// text with something less important after it.
type cell struct {
	IsTime     bool
	Time       time.Time
	Topic      string
	Text, More string
}

func timeCell(at time.Time) cell { return cell{IsTime: true, Time: at} }

var (
	columnTopic     = column{Name: "Topic", of: func(j client.Job) cell { return cell{Topic: j.Topic} }}
	columnDue       = column{Name: "Due", of: func(j client.Job) cell { return timeCell(j.DueAt) }}
	columnAdded     = column{Name: "Added", of: func(j client.Job) cell { return timeCell(j.CreatedAt) }}
	columnLease     = column{Name: "Lease ends", of: func(j client.Job) cell { return timeCell(j.ReservedUntil) }}
	columnDied      = column{Name: "Died", of: func(j client.Job) cell { return timeCell(j.DiedAt) }}
	columnEnded     = column{Name: "Ended", of: func(j client.Job) cell { return timeCell(later(j.FinishedAt, j.DeletedAt)) }}
	columnKept      = column{Name: "Kept until", of: func(j client.Job) cell { return timeCell(j.RetainedUntil) }}
	columnPriority  = column{Name: "Priority", Number: true, of: func(j client.Job) cell { return cell{Text: exact(uint64(j.Priority))} }}
	columnConsumer  = column{Name: "Consumer", of: func(j client.Job) cell { return cell{Text: j.ReservedBy} }}
	columnReason    = column{Name: "Reason", of: func(j client.Job) cell { return cell{Text: j.Reason} }}
	columnLastError = column{Name: "Last error", of: func(j client.Job) cell { return cell{Text: j.LastError} }}
	columnAttempts  = column{Name: "Attempts", Number: true, of: func(j client.Job) cell {
		c := cell{Text: exact(uint64(j.Attempts))}
		if j.MaxAttempts > 0 {
			c.More = "of " + exact(uint64(j.MaxAttempts))
		}
		return c
	}}
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// columnsOf returns the columns for jobs of one topic in a state.
func columnsOf(state string) []column {
	switch state {
	case "reserved":
		return []column{columnLease, columnConsumer, columnAttempts, columnPriority, columnDue}
	case "dead":
		return []column{columnDied, columnReason, columnAttempts, columnAdded}
	case "finished", "deleted":
		return []column{columnEnded, columnKept, columnAttempts, columnAdded}
	}
	return []column{columnDue, columnPriority, columnAttempts, columnAdded, columnLastError}
}

// actionsOn returns what can be done to jobs in a state.
func actionsOn(state string) []jobsVerb {
	switch state {
	case "dead", "delayed":
		return []jobsVerb{kickVerb, deleteVerb}
	case "finished", "deleted":
		return nil
	}
	return []jobsVerb{deleteVerb}
}
