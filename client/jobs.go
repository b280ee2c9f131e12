package client

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Add adds a job. If its ID is set, it may be called again with the same job after an
// unknown outcome: while the first job exists there will be only one.
func (c *Client) Add(ctx context.Context, a NewJob) (Added, error) {
	return ask[Added](ctx, c, request{method: http.MethodPost, path: "/v1/jobs", in: a.wire(), repeat: true})
}

// AddBatch adds jobs, up to 1000 in one request, with one result each, in order. The second
// error is that of the first request: no result is known. When a later request fails, its jobs
// have its error, and those after it are not sent and have CodeNotApplied. So it is with the
// other batches.
func (c *Client) AddBatch(ctx context.Context, jobs []NewJob) ([]AddResult, error) {
	return inParts(jobs, func(part []NewJob) ([]AddResult, error) {
		in := struct {
			Jobs []wireAdd `json:"jobs"`
		}{wires(part)}
		return c.askAdds(ctx, request{path: "/v1/jobs/batch", in: in, repeat: true}, len(part))
	}, func(r *AddResult) *error { return &r.Err })
}

// askAdds makes a POST with a result for each of n jobs.
func (c *Client) askAdds(ctx context.Context, q request, n int) ([]AddResult, error) {
	q.method, q.most = http.MethodPost, maxJobReply
	out, err := ask[results[Added]](ctx, c, q)
	if err == nil {
		err = out.check(n)
	}
	if err != nil {
		return nil, err
	}
	list := make([]AddResult, n)
	for i := range list {
		list[i] = AddResult{Added: out.Results[i].Answer, Err: out.Results[i].err()}
	}
	return list, nil
}

// AddAll adds up to 1000 jobs atomically. An error means that none was added, unless its
// outcome is unknown.
func (c *Client) AddAll(ctx context.Context, jobs []NewJob) ([]Added, error) {
	in := struct {
		Jobs   []wireAdd `json:"jobs"`
		Atomic bool      `json:"atomic"`
	}{wires(jobs), true}
	out, err := ask[results[Added]](ctx, c, request{method: http.MethodPost, path: "/v1/jobs/batch", in: in, repeat: true, most: maxJobReply})
	if err != nil {
		return nil, err
	}
	return out.all(len(jobs))
}

// FinishThen finishes a reserved job and adds jobs, atomically. One of them may have the id
// of the finished job. It is not retried after an unknown outcome, because not_found would
// not tell whether the jobs were added.
func (c *Client) FinishThen(ctx context.Context, ref Ref, jobs []NewJob) ([]Added, error) {
	if ref.ID == "" {
		return nil, errNoID
	}
	in := struct {
		Token string    `json:"token,omitzero"`
		Then  []wireAdd `json:"then"`
	}{ref.Token, wires(jobs)}
	out, err := ask[results[Added]](ctx, c, request{method: http.MethodPost, path: jobPath(ref.ID, "finish"), in: in})
	if err != nil {
		return nil, err
	}
	return out.all(len(jobs))
}

func wires(jobs []NewJob) []wireAdd {
	made := make([]wireAdd, len(jobs))
	for i, a := range jobs {
		made[i] = a.wire()
	}
	return made
}

// wireAdd is a NewJob in its JSON form.
type wireAdd struct {
	Topic       string            `json:"topic"`
	ID          string            `json:"id"`
	Delay       *Duration         `json:"delay,omitzero"`
	DueAt       *time.Time        `json:"due_at,omitzero"`
	ExpiresAt   *time.Time        `json:"expires_at,omitzero"`
	TTR         *Duration         `json:"ttr,omitzero"`
	Priority    *uint32           `json:"priority,omitzero"`
	MaxAttempts *uint32           `json:"max_attempts,omitzero"`
	IfExists    IfExists          `json:"if_exists,omitzero"`
	Backoff     *Backoff          `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	PushURL     string            `json:"push_url,omitzero"`
	Condition
	Body
}

func (a NewJob) wire() wireAdd {
	w := wireAdd{Topic: a.Topic, ID: a.ID, Priority: a.Priority, MaxAttempts: a.MaxAttempts, IfExists: a.IfExists, Backoff: a.Backoff, Headers: a.Headers, PushURL: a.PushURL, Condition: a.Condition, Body: a.Body}
	if w.ID == "" {
		w.ID = rand.Text()
	}
	w.Delay, w.TTR = seconds(a.Delay), seconds(a.TTR)
	if !a.DueAt.IsZero() {
		w.DueAt = &a.DueAt
	}
	if !a.ExpiresAt.IsZero() {
		w.ExpiresAt = &a.ExpiresAt
	}
	return w
}

// seconds returns nil for 0, which is omitted from a request.
func seconds(d time.Duration) *Duration {
	if d == 0 {
		return nil
	}
	return &Duration{d}
}

// results is the response to a batch.
type results[T any] struct {
	Results items[result[T]] `json:"results"`
}

type result[T any] struct {
	Success bool   `json:"success"`
	Code    Code   `json:"code"`
	Field   string `json:"field"`
	Error   string `json:"error"`
	Outcome string `json:"outcome"`
	Answer  T      `json:",embed"`
}

func (r *result[T]) err() error {
	if r.Success {
		return nil
	}
	return &Error{Status: http.StatusOK, Code: r.Code, Message: r.Error, Field: r.Field, Unknown: r.Outcome == "unknown"}
}

func (r *results[T]) check(n int) error {
	if len(r.Results) != n {
		return errorf(CodeUnknown, "%d items were answered by %d results", n, len(r.Results))
	}
	return nil
}

// finished returns one error for each of n finishes; nil: it is finished, maybe by an earlier
// attempt.
func (r *results[T]) finished(n int, earlier bool) ([]error, error) {
	if err := r.check(n); err != nil {
		return nil, err
	}
	errs := make([]error, n)
	for i := range errs {
		if e := r.Results[i].err(); !earlier || !errors.Is(e, CodeNotFound) {
			errs[i] = e
		}
	}
	return errs, nil
}

// all returns the results of an atomic batch.
func (r *results[T]) all(n int) ([]T, error) {
	if err := r.check(n); err != nil {
		return nil, err
	}
	list := make([]T, n)
	for i := range list {
		if err := r.Results[i].err(); err != nil {
			return nil, err
		}
		list[i] = r.Results[i].Answer
	}
	return list, nil
}

// errNoID is the error of a call on one job without its id. Only in batches a token is
// enough.
var errNoID = errorf(CodeInvalidArgument, "id is missing")

// Finish finishes a reserved job. It also succeeds if an earlier attempt of the same call,
// whose response was lost, has done so; and if the lease of the token has expired but no
// other consumer has had the job since, unless the topic has LateFinish "refuse". Without a
// token it finishes the job whoever has reserved it, so give the token.
func (c *Client) Finish(ctx context.Context, ref Ref) error {
	if ref.ID == "" {
		return errNoID
	}
	return c.end(ctx, http.MethodPost, jobPath(ref.ID, "finish"), tokenOnly(ref), &Changed{})
}

// Delete deletes a job in any state. With a token it fails once that reservation has ended.
func (c *Client) Delete(ctx context.Context, ref Ref) error {
	return c.DeleteIf(ctx, ref, Condition{})
}

// DeleteIf deletes a job if it meets the condition. With the IfState "delayed" and "ready" it
// cancels a job that has not started.
func (c *Client) DeleteIf(ctx context.Context, ref Ref, cond Condition) error {
	if ref.ID == "" {
		return errNoID
	}
	query := url.Values{}
	if ref.Token != "" {
		query.Set("token", ref.Token)
	}
	if cond.IfRevision != 0 {
		query.Set("if_revision", strconv.FormatUint(uint64(cond.IfRevision), 10))
	}
	var states []string
	for _, s := range cond.IfState {
		states = append(states, string(s))
	}
	if states != nil {
		query.Set("if_state", strings.Join(states, ","))
	}
	path := jobPath(ref.ID, "")
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.end(ctx, http.MethodDelete, path, nil, &Changed{})
}

// Update changes a delayed, ready or dead job in place. After an unknown outcome it may be
// called again, unless it has a condition.
func (c *Client) Update(ctx context.Context, id string, u Update) (Changed, error) {
	if id == "" {
		return Changed{}, errNoID
	}
	return ask[Changed](ctx, c, request{method: http.MethodPatch, path: jobPath(id, ""), in: u.wire("")})
}

// wire is the update as the server reads it, with an id in a batch.
func (u *Update) wire(id string) any {
	in := struct {
		ID          string     `json:"id,omitzero"`
		Delay       *Duration  `json:"delay,omitzero"`
		DueAt       *time.Time `json:"due_at,omitzero"`
		ExpiresAt   any        `json:"expires_at,omitzero"`
		TTR         *Duration  `json:"ttr,omitzero"`
		Priority    *uint32    `json:"priority,omitzero"`
		MaxAttempts *uint32    `json:"max_attempts,omitzero"`
		Backoff     any        `json:"backoff,omitzero"`
		Headers     any        `json:"headers,omitzero"`
		PushURL     *string    `json:"push_url,omitzero"`
		*Body
		Condition
	}{ID: id, TTR: seconds(u.TTR), Priority: u.Priority, MaxAttempts: u.MaxAttempts, PushURL: u.PushURL, Body: u.Body, Condition: u.Condition}
	if u.Delay != nil {
		in.Delay = &Duration{*u.Delay}
	}
	if !u.DueAt.IsZero() {
		in.DueAt = &u.DueAt
	}
	switch {
	case u.NeverExpire:
		in.ExpiresAt = "never"
	case !u.ExpiresAt.IsZero():
		in.ExpiresAt = u.ExpiresAt
	}
	if u.Headers != nil {
		in.Headers = u.Headers
	}
	switch {
	case u.Backoff == nil:
	case u.Backoff.isZero():
		in.Backoff = []Duration{} // none from now on
	default:
		in.Backoff = u.Backoff
	}
	return in
}

func (b *Backoff) isZero() bool {
	return len(b.Delays) == 0 && b.Base.Duration == 0 && b.Factor == 0 && b.Max.Duration == 0 && b.Jitter == 0
}

// Release releases a reserved job.
func (c *Client) Release(ctx context.Context, ref Ref, r ReleaseOptions) (Changed, error) {
	delay := seconds(r.Delay)
	if r.AtOnce {
		delay = &Duration{}
	}
	return c.change(ctx, ref, "release", false, struct {
		Token    string    `json:"token,omitzero"`
		Delay    *Duration `json:"delay,omitzero"`
		Priority *uint32   `json:"priority,omitzero"`
		Reason   string    `json:"reason,omitzero"`
	}{ref.Token, delay, r.Priority, r.Reason})
}

// Touch makes a reservation expire ttr from now; 0 means the job's own TTR.
func (c *Client) Touch(ctx context.Context, ref Ref, ttr time.Duration) (Changed, error) {
	return c.change(ctx, ref, "touch", true, struct {
		Token string    `json:"token,omitzero"`
		TTR   *Duration `json:"ttr,omitzero"`
	}{ref.Token, seconds(ttr)})
}

// Bury makes a reserved job dead. It stays until it is kicked or deleted.
func (c *Client) Bury(ctx context.Context, ref Ref, b BuryOptions) (Changed, error) {
	return c.change(ctx, ref, "bury", false, struct {
		Token    string  `json:"token,omitzero"`
		Priority *uint32 `json:"priority,omitzero"`
		Reason   string  `json:"reason,omitzero"`
	}{ref.Token, b.Priority, b.Reason})
}

// Kick makes a dead or delayed job ready.
func (c *Client) Kick(ctx context.Context, id string) (Changed, error) {
	return c.change(ctx, Ref{ID: id}, "kick", false, nil)
}

func (c *Client) change(ctx context.Context, ref Ref, verb string, repeat bool, in any) (Changed, error) {
	if ref.ID == "" {
		return Changed{}, errNoID
	}
	return ask[Changed](ctx, c, request{method: http.MethodPost, path: jobPath(ref.ID, verb), in: in, repeat: repeat})
}

func tokenOnly(ref Ref) any {
	if ref.Token == "" {
		return nil
	}
	return struct {
		Token string `json:"token"`
	}{ref.Token}
}

// Get returns a job. It fails with CodeNotFound if there is none.
func (c *Client) Get(ctx context.Context, id string) (Job, error) {
	if id == "" {
		return Job{}, errNoID
	}
	return ask[Job](ctx, c, request{method: http.MethodGet, path: jobPath(id, ""), repeat: true, most: maxJobReply})
}

// GetBatch returns jobs by their ids, with one result each, in order, and with their bodies
// if bodies is set. It asks again for jobs for which a request or a reply has no room, so the
// jobs need not be of one state.
func (c *Client) GetBatch(ctx context.Context, ids []string, bodies bool) ([]GetResult, error) {
	path := "/v1/get"
	if !bodies {
		path += "?body=false"
	}
	var list []GetResult
	for {
		in := struct {
			IDs []string `json:"ids"`
		}{ids[len(list):min(len(list)+maxItems, len(ids))]}
		out, err := ask[results[Job]](ctx, c, request{method: http.MethodPost, path: path, in: in, repeat: true, reads: true, most: maxPageReply})
		if err == nil {
			err = out.check(len(in.IDs))
		}
		if err != nil {
			return nil, err
		}
		for i := range out.Results {
			r := &out.Results[i]
			if i > 0 && r.Code == CodeReplyFull {
				break
			}
			list = append(list, GetResult{Job: r.Answer, Err: r.err()})
		}
		if len(list) == len(ids) {
			return list, nil
		}
	}
}

// History returns the events of a job, if its topic keeps histories.
func (c *Client) History(ctx context.Context, id string) (History, error) {
	if id == "" {
		return History{}, errNoID
	}
	return read[History](ctx, c, jobPath(id, "history"))
}

// List lists topics by name.
func (c Topics) List(ctx context.Context, p PageOptions) iter.Seq2[Topic, error] {
	return pages(p.After, func(after string) ([]Topic, string, error) {
		out, err := read[topicPage](ctx, c.client, "/v1/topics"+pageQuery(after, p.Size))
		return out.Topics, out.Next, err
	})
}

// Stats returns the number of topics, and of all jobs by state.
func (c Topics) Stats(ctx context.Context) (Stats, error) {
	out, err := read[statsReply](ctx, c.client, "/v1/stats")
	if err == nil {
		out.Stats.Topics = *out.Topics
	}
	return out.Stats, err
}

// Get returns the counts of one topic; all zero: it has no jobs.
func (c Topics) Get(ctx context.Context, name string) (Topic, error) {
	return read[Topic](ctx, c.client, "/v1/topics/"+segment(name))
}

func jobPath(id, verb string) string {
	path := "/v1/jobs/" + segment(id)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// segment escapes a name as one segment of a path. It also escapes "." and "..", which a
// proxy could resolve.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
