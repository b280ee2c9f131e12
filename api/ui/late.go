package ui

import (
	"net/url"
	"strconv"
	"time"

	"tarry/client"
)

const (
	// lateAfter is how long a job may be due before it counts as late.
	lateAfter = 10 * time.Second
	// maxLate bounds the late jobs of a topic that are counted: a page lists many topics.
	maxLate = 100
)

// late is how many jobs of a topic are late.
type late struct {
	Jobs   uint64
	More   bool      // there are more than maxLate
	Before time.Time // they were due before
}

// lateOf counts the jobs that have been ready for longer than lateAfter. The API finds them by
// their due times; a topic whose oldest job is not late is not asked about, and in a paused
// one nobody waits for them.
func (q *request) lateOf(t *client.Topic) (l late, err error) {
	due := q.now().Add(-lateAfter)
	if t.Ready == 0 || t.Paused || t.OldestDueAt.IsZero() || t.OldestDueAt.After(due) {
		return late{}, nil
	}
	var page struct {
		Jobs []struct{} `json:"jobs"`
		Next string     `json:"next"`
	}
	query := url.Values{"state": {"ready"}, "due_to": {due.UTC().Format(dueFormat)}, "max": {strconv.Itoa(maxLate)}}
	if err := q.read("/v1/topics/"+segment(t.Name)+"/jobs", query, &page); err != nil {
		return late{}, err
	}
	return late{uint64(len(page.Jobs)), page.Next != "", due}, nil
}
