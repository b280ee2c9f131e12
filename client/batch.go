package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// ChangeResult is one item of KickBatch and UpdateBatch; Err is nil or an *Error.
type ChangeResult struct {
	Changed
	Err error
}

// JobUpdate is an update of one job of UpdateBatch.
type JobUpdate struct {
	ID string
	Update
}

// inParts makes a batch in requests of as many items as a node takes. errorOf is where a result
// has its error.
func inParts[In, Out any](items []In, call func(part []In) ([]Out, error), errorOf func(*Out) *error) ([]Out, error) {
	if len(items) <= maxItems {
		return call(items)
	}
	var all []Out
	var failure error
	for part := range slices.Chunk(items, maxItems) {
		first := len(all)
		out, err := make([]Out, len(part)), failure
		if failure == nil {
			out, err = call(part)
		}
		switch {
		case err != nil && first == 0:
			return nil, err
		case err != nil && failure == nil:
			failure = errorf(CodeNotApplied, "it was not sent, because an earlier part of the batch failed: %w", err)
			out = make([]Out, len(part))
		}
		for i := range out {
			to := errorOf(&out[i])
			*to = ofPart(first, cmp.Or(err, *to))
		}
		all = append(all, out...)
	}
	return all, nil
}

var itemOfPart = regexp.MustCompile(`^jobs\[(\d+)\]`)

// ofPart returns the error of an item in the part of a batch that begins with the item first: it
// names the item of the batch.
func ofPart(first int, err error) error {
	e, ok := err.(*Error)
	if !ok || first == 0 {
		return err
	}
	named := func(text string) string {
		return itemOfPart.ReplaceAllStringFunc(text, func(found string) string {
			n, _ := strconv.Atoi(found[len("jobs[") : len(found)-1])
			return fmt.Sprintf("jobs[%d]", first+n)
		})
	}
	of := *e
	of.Field, of.Message = named(e.Field), named(e.Message)
	return &of
}

// KickBatch makes dead or delayed jobs ready, up to 1000 in one request, with one result
// each, in order.
func (c *Client) KickBatch(ctx context.Context, ids []string) ([]ChangeResult, error) {
	refs := make([]Ref, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	return changeBatch(ctx, c, "/v1/kick", refs)
}

// UpdateBatch changes delayed, ready or dead jobs, up to 1000 in one request, with one result
// each, in order.
func (c *Client) UpdateBatch(ctx context.Context, updates []JobUpdate) ([]ChangeResult, error) {
	in := make([]any, len(updates))
	for i := range updates {
		in[i] = updates[i].wire(updates[i].ID)
	}
	return changeBatch(ctx, c, "/v1/update", in)
}

// changeBatch makes a call that changes jobs and is not repeated after an unknown outcome.
func changeBatch[J any](ctx context.Context, c *Client, path string, jobs []J) ([]ChangeResult, error) {
	return inParts(jobs, func(part []J) ([]ChangeResult, error) {
		in := struct {
			Jobs []J `json:"jobs"`
		}{part}
		out, err := ask[results[Changed]](ctx, c, request{method: http.MethodPost, path: path, in: in, most: maxJobReply})
		if err == nil {
			err = out.check(len(part))
		}
		if err != nil {
			return nil, err
		}
		list := make([]ChangeResult, len(part))
		for i := range list {
			r := &out.Results[i]
			list[i] = ChangeResult{Changed: r.Answer, Err: r.err()}
		}
		return list, nil
	}, func(r *ChangeResult) *error { return &r.Err })
}

// DeleteBatch deletes jobs in any state, up to 1000 in one request; one with a token only
// while that reservation lasts. It returns one error per item, nil for a deleted one. The
// second error is that of the first request.
func (c *Client) DeleteBatch(ctx context.Context, refs []Ref) ([]error, error) {
	return c.endBatch(ctx, "/v1/delete", refs)
}

// FinishBatch finishes jobs, up to 1000 in one request. It returns one error per item, nil for
// a finished one. The second error is that of the first request.
func (c *Client) FinishBatch(ctx context.Context, refs []Ref) ([]error, error) {
	return c.endBatch(ctx, "/v1/finish", refs)
}

// endBatch makes a call that ends jobs. A job that is not found after an earlier attempt,
// whose reply was lost, was ended by that one.
func (c *Client) endBatch(ctx context.Context, path string, refs []Ref) ([]error, error) {
	return inParts(refs, func(part []Ref) ([]error, error) {
		in := struct {
			Jobs []Ref `json:"jobs"`
		}{part}
		var out results[Changed]
		earlier, err := c.call(ctx, request{method: http.MethodPost, path: path, in: in, repeat: true, most: maxJobReply}, &out)
		if err != nil {
			return nil, err
		}
		return out.finished(len(part), earlier)
	}, func(err *error) *error { return err })
}

// ImportedJob is a job as it was elsewhere. It is also a line of an export (docs/formats.md).
type ImportedJob struct {
	ID    string `json:"id,omitzero"`
	Topic string `json:"topic"`
	// State is dead, or for a job that waits delayed or ready: which of the two depends on
	// DueAt.
	State     State     `json:"state"`
	DueAt     time.Time `json:"due_at"`
	Delay     Duration  `json:"delay,omitzero"` // that gave it DueAt
	CreatedAt time.Time `json:"created_at,omitzero"`
	DiedAt    time.Time `json:"died_at,omitzero"`    // of a dead job; zero means now
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	TTR       Duration  `json:"ttr"`
	Priority  uint32    `json:"priority"`
	// Attempts are those so far: fewer than MaxAttempts, unless the job is dead. A MaxAttempts
	// of 0 is no limit.
	Attempts    uint32            `json:"attempts,omitzero"`
	MaxAttempts uint32            `json:"max_attempts"`
	Reserves    uint32            `json:"reserves,omitzero"`
	Timeouts    uint32            `json:"timeouts,omitzero"`
	Releases    uint32            `json:"releases,omitzero"`
	Buries      uint32            `json:"buries,omitzero"`
	Kicks       uint32            `json:"kicks,omitzero"`
	Reason      string            `json:"reason,omitzero"`
	LastError   string            `json:"last_error,omitzero"`
	Backoff     *Backoff          `json:"backoff,omitzero"`
	Headers     map[string]string `json:"headers,omitempty"`
	PushURL     string            `json:"push_url,omitzero"`
	Body
}

// ImportBatch adds jobs as they were elsewhere, up to 1000 in one request, with one result
// each, in order. Existing is set for a job whose id is taken by a job of the same topic with
// the same body, which stays as it is; so the call is safe to repeat if all jobs have ids.
// Errors are as in AddBatch. It needs the verbs add and manage on the topics, and cluster
// version 2.
func (c *Client) ImportBatch(ctx context.Context, jobs []ImportedJob) ([]AddResult, error) {
	repeat := true
	for i := range jobs {
		repeat = repeat && jobs[i].ID != ""
	}
	return inParts(jobs, func(part []ImportedJob) ([]AddResult, error) {
		in := struct {
			Jobs []ImportedJob `json:"jobs"`
		}{part}
		return c.askAdds(ctx, request{path: "/v1/import", in: in, repeat: repeat}, len(part))
	}, func(r *AddResult) *error { return &r.Err })
}

// AddResult is one item of AddBatch; Err is nil or an *Error.
type AddResult struct {
	Added
	Err error
}

// GetResult is one item of GetBatch; Err is nil or an *Error, such as one with CodeNotFound.
type GetResult struct {
	Job
	Err error
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
