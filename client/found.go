package client

import (
	"context"
	"net/http"
	"strconv"
)

// Selection says which jobs something is done to: those that Jobs lists for the same topic,
// state and filter, which has an IDPrefix or Headers that topics index (docs/headers.md).
type Selection struct {
	Topic string // empty: of all topics
	State State  // delayed, ready, reserved or dead; empty: any of the four
	Filter
	Max    int    // 1 to 10000 jobs; 0: all of them
	Cursor string // ChangedFound.Next of the call before; empty: from the first job on
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
	return c.changeFound(ctx, http.MethodDelete, "/v1/jobs", f, nil)
}

// UpdateJobs changes the jobs that are found, as Update does with one. u has no condition.
func (c *Client) UpdateJobs(ctx context.Context, f Selection, u Update) (ChangedJobs, error) {
	return c.changeFound(ctx, http.MethodPatch, "/v1/jobs", f, u.wire(""))
}

// KickJobs makes the dead and delayed jobs that are found ready, in another topic unless
// toTopic is empty.
func (c *Client) KickJobs(ctx context.Context, f Selection, toTopic string) (ChangedJobs, error) {
	in := struct {
		ToTopic string `json:"to_topic,omitzero"`
	}{toTopic}
	return c.changeFound(ctx, http.MethodPost, "/v1/jobs/kick", f, in)
}

func (c *Client) changeFound(ctx context.Context, method, path string, f Selection, in any) (ChangedJobs, error) {
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
