package client

import (
	"context"
	"net/http"
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

// KickBatch makes up to 1000 dead or delayed jobs ready in one request, with one result
// each, in order.
func (c *Client) KickBatch(ctx context.Context, ids []string) ([]ChangeResult, error) {
	refs := make([]Ref, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	return c.changeBatch(ctx, "/v1/kick", len(refs), refs)
}

// UpdateBatch changes up to 1000 delayed, ready or dead jobs in one request, with one result
// each, in order.
func (c *Client) UpdateBatch(ctx context.Context, updates []JobUpdate) ([]ChangeResult, error) {
	in := make([]any, len(updates))
	for i := range updates {
		in[i] = updates[i].wire(updates[i].ID)
	}
	return c.changeBatch(ctx, "/v1/update", len(in), in)
}

// changeBatch makes a call that changes n jobs and is not repeated after an unknown outcome.
func (c *Client) changeBatch(ctx context.Context, path string, n int, jobs any) ([]ChangeResult, error) {
	in := struct {
		Jobs any `json:"jobs"`
	}{jobs}
	out, err := ask[results[Changed]](ctx, c, request{method: http.MethodPost, path: path, in: in, most: maxJobReply})
	if err == nil {
		err = out.check(n)
	}
	if err != nil {
		return nil, err
	}
	list := make([]ChangeResult, n)
	for i := range list {
		r := &out.Results[i]
		list[i] = ChangeResult{Changed: r.Answer, Err: r.err()}
	}
	return list, nil
}

// DeleteBatch deletes up to 1000 jobs in any state in one request; one with a token only
// while that reservation lasts. It returns one error per item, nil for a deleted one. The
// second error is about the whole request.
func (c *Client) DeleteBatch(ctx context.Context, refs []Ref) ([]error, error) {
	return c.endBatch(ctx, "/v1/delete", refs)
}

// FinishBatch finishes up to 1000 jobs in one request. It returns one error per item, nil for
// a finished one. The second error is about the whole request.
func (c *Client) FinishBatch(ctx context.Context, refs []Ref) ([]error, error) {
	return c.endBatch(ctx, "/v1/finish", refs)
}

// endBatch makes a call that ends jobs. A job that is not found after an earlier attempt,
// whose reply was lost, was ended by that one.
func (c *Client) endBatch(ctx context.Context, path string, refs []Ref) ([]error, error) {
	in := struct {
		Jobs []Ref `json:"jobs"`
	}{refs}
	var out results[Changed]
	earlier, err := c.call(ctx, request{method: http.MethodPost, path: path, in: in, repeat: true, most: maxJobReply}, &out)
	if err != nil {
		return nil, err
	}
	return out.finished(len(refs), earlier)
}
