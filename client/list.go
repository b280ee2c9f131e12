package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Filter selects jobs: those that match all fields that are set. Ranges of time exclude
// their end.
type Filter struct {
	IDPrefix string `json:"id_prefix,omitzero"`
	Reason   string `json:"reason,omitzero"` // a part of the reason or of the last error
	// ExactReason is the reason of a group of dead jobs (DeadReason); nil: any.
	ExactReason *string   `json:"exact_reason,omitzero"`
	DueFrom     time.Time `json:"due_from,omitzero"`
	DueTo       time.Time `json:"due_to,omitzero"`
	DiedFrom    time.Time `json:"died_from,omitzero"` // selects only dead jobs, like DiedTo
	DiedTo      time.Time `json:"died_to,omitzero"`
	// Headers that a job must have, with these values.
	Headers map[string]string `json:"headers,omitempty"`
}

// ListOptions selects a listing: the jobs of Topic, in the order of the states delayed, ready,
// reserved and dead, and in the server's order within each; or, with IDPrefix, jobs by id, of
// one topic or (with an empty Topic) of all; or, with an empty Topic and Headers that topics
// index, jobs of all topics by header (docs/headers.md).
type ListOptions struct {
	Topic string
	State State // one of the four, finished or deleted; empty: any of the four
	Filter
	Bodies bool // with the bodies of the jobs
	Page   int  // jobs per page, 1 to 1000; 0 means 100
}

// ErrIncomplete says that a listing by header may lack jobs that a topic had before its
// setting, because their index is still being built.
var ErrIncomplete = errors.New("jobs may be missing: the index of a header is being built")

// PageOptions say where a list begins and how it is read. The zero value is for all of it.
type PageOptions struct {
	After string // a name: the list begins behind it
	Size  int    // how many one request asks for, 1 to 1000; 0 means 1000
}

// pages yields the items of a list page by page, until there are no more, the caller leaves the
// loop, or a page fails: then the last item is zero and has the error.
func pages[T any](cursor string, page func(cursor string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			items, next, err := page(cursor)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, one := range items {
				if !yield(one, nil) {
					return
				}
			}
			if cursor = next; next == "" {
				return
			}
		}
	}
}

// Collect gathers the items of a list, up to its first error.
func Collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Jobs lists jobs. Each page is a consistent state; the pages together are not. ErrIncomplete
// comes last, when all that were found have come.
func (c *Client) Jobs(ctx context.Context, q ListOptions) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		var incomplete error
		list := pages("", func(cursor string) ([]Job, string, error) {
			page, next, err := c.JobsPage(ctx, q, cursor)
			if errors.Is(err, ErrIncomplete) {
				incomplete, err = err, nil
			}
			return page, next, err
		})
		for j, err := range list {
			if !yield(j, err) || err != nil {
				return
			}
		}
		if incomplete != nil {
			yield(Job{}, incomplete)
		}
	}
}

// JobsPage returns one page of a listing; cursor is empty for the first one. next is the
// cursor of the next page; empty: there is none. A page may be short or empty and still have
// a next one. With ErrIncomplete the page is valid, too.
func (c *Client) JobsPage(ctx context.Context, q ListOptions, cursor string) (jobs []Job, next string, err error) {
	path := "/v1/jobs"
	if q.Topic != "" {
		path = "/v1/topics/" + segment(q.Topic) + "/jobs"
	}
	if query := q.query(cursor); len(query) > 0 {
		path += "?" + query.Encode()
	}
	var out jobPage
	most := int64(maxJobReply)
	if q.Bodies {
		most = maxPageReply
	}
	_, err = c.call(ctx, request{method: http.MethodGet, path: path, repeat: true, most: most}, &out)
	if err == nil && out.Incomplete {
		err = ErrIncomplete
	}
	return out.Jobs, out.Next, err
}

func (q ListOptions) query(cursor string) url.Values {
	query := url.Values{}
	for name, v := range map[string]string{"state": string(q.State), "id_prefix": q.IDPrefix, "reason": q.Reason, "cursor": cursor} {
		if v != "" {
			query.Set(name, v)
		}
	}
	if q.ExactReason != nil {
		query.Set("exact_reason", *q.ExactReason)
	}
	for name, at := range map[string]time.Time{"due_from": q.DueFrom, "due_to": q.DueTo, "died_from": q.DiedFrom, "died_to": q.DiedTo} {
		if !at.IsZero() {
			query.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	for name, v := range q.Headers {
		query.Set("header."+name, v)
	}
	if q.Bodies {
		query.Set("body", "true")
	}
	if q.Page != 0 {
		query.Set("max", strconv.Itoa(q.Page))
	}
	return query
}

// Selection says which jobs something is done to: those that Jobs lists for the same topic,
// state and filter, which has an IDPrefix or Headers that topics index (docs/headers.md).
type Selection struct {
	Topic string // empty: of all topics
	State State  // delayed, ready, reserved or dead; empty: any of the four
	Filter
	Max    int    // 1 to 10000 jobs; 0: all of them
	Cursor string // ChangedJobs.Next of the call before; empty: from the first job on
}

// ChangedJobs is what became of it.
type ChangedJobs struct {
	Count int
	// Skipped is how many jobs could not be changed, as a reserved one cannot be updated;
	// Reason says why the first was skipped.
	Skipped int
	Reason  string
	// Incomplete says that jobs may have been missed, because the index of a header is
	// being built for the jobs that a topic had before its setting.
	Incomplete bool
	// More says that the call ended before it had seen all jobs; Next is where to go on.
	More bool
	Next string
}

// DeleteJobs deletes the jobs that are found.
func (c *Client) DeleteJobs(ctx context.Context, f Selection) (ChangedJobs, error) {
	return c.changeJobs(ctx, http.MethodDelete, "/v1/jobs", f, nil)
}

// UpdateJobs changes the jobs that are found, as Update does with one. u has no condition.
func (c *Client) UpdateJobs(ctx context.Context, f Selection, u Update) (ChangedJobs, error) {
	return c.changeJobs(ctx, http.MethodPatch, "/v1/jobs", f, u.wire(""))
}

// KickJobs makes the dead and delayed jobs that are found ready, in another topic unless
// toTopic is empty.
func (c *Client) KickJobs(ctx context.Context, f Selection, toTopic string) (ChangedJobs, error) {
	in := struct {
		ToTopic string `json:"to_topic,omitzero"`
	}{toTopic}
	return c.changeJobs(ctx, http.MethodPost, "/v1/jobs/kick", f, in)
}

func (c *Client) changeJobs(ctx context.Context, method, path string, f Selection, in any) (ChangedJobs, error) {
	query := ListOptions{State: f.State, Filter: f.Filter, Page: f.Max}.query(f.Cursor)
	if f.Topic != "" {
		query.Set("topic", f.Topic)
	}
	if f.Max == 0 {
		query.Set("all", strconv.FormatBool(true))
	}
	var out foundReply
	_, err := c.call(ctx, request{method: method, path: path + "?" + query.Encode(), in: in, work: sweepTime}, &out)
	return ChangedJobs{out.count(), out.Skipped, out.Reason, out.Incomplete, out.More, out.Next}, err
}

// pageQuery returns the query of a call that lists pages.
func pageQuery(after string, size int) string {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if size > 0 {
		query.Set("max", strconv.Itoa(size))
	}
	return withQuery("", query)
}

// withQuery returns a path with its query, if there is one.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
