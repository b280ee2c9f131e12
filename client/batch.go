package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
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
