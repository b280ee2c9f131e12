package client

import (
	"context"
	"net/http"
	"time"
)

// maxWait is the longest wait that a node allows in one request.
const maxWait = 5 * time.Minute

// Reserve waits up to r.Wait for jobs and reserves up to r.Max of them. If there is none in
// time it returns an empty list. It waits no longer than the deadline of ctx allows: the wait
// is shortened by a quarter of the time that is left, 500 ms at most, so that the answer comes
// in time. If ctx ends first it returns ctx's error, and jobs that were already assigned are
// released.
func (c *Client) Reserve(ctx context.Context, r ReserveOptions) ([]Reserved, error) {
	jobs, _, err := c.reserve(ctx, nil, r, 0)
	return jobs, err
}

// FinishAndReserve finishes 1 to 1000 jobs and then reserves others, in one step. So a worker
// that always has work makes one call and one commit for each job. It returns the jobs that it
// has reserved, and one error for each of refs, nil for a job that is finished. A finish that
// fails does not stop the reserve.
//
// The finishes are done at once, but their errors are returned when a job is ready or r.Wait is
// over: with r.Wait 0 it does not wait for a job. If the reserve fails after the finishes, it
// returns no jobs, and the next one will fail.
//
// The last error is about the whole call. As with Finish, the call is tried again after an
// unknown outcome, and a job that is gone by then is finished. Jobs that were reserved by an
// attempt whose response was lost are handed out again when their leases expire.
func (c *Client) FinishAndReserve(ctx context.Context, refs []Ref, r ReserveOptions) ([]Reserved, []error, error) {
	if len(refs) == 0 {
		return nil, nil, errorf(CodeInvalidArgument, "there is no job to finish")
	}
	return c.reserve(ctx, refs, r, 0)
}

// reserve finishes jobs with its first request, if there are any. Once they are finished it
// does not fail. soon is request.soon.
func (c *Client) reserve(ctx context.Context, finish []Ref, r ReserveOptions, soon time.Duration) (jobs []Reserved, finished []error, err error) {
	in := struct {
		Topics   []string  `json:"topics"`
		Max      int       `json:"max"`
		Wait     Duration  `json:"wait"`
		TTR      *Duration `json:"ttr,omitzero"`
		Consumer string    `json:"consumer,omitzero"`
		Finish   []Ref     `json:"finish,omitempty"`
	}{Topics: r.Topics, Max: max(r.Max, 1), TTR: seconds(r.TTR), Consumer: r.Consumer, Finish: finish}
	waiting := func(left time.Duration) any {
		in.Wait.Duration = left.Truncate(time.Millisecond)
		return in
	}
	end := waitEnd(ctx, r.Wait)
	for {
		left := min(max(time.Until(end), 0), maxWait)
		var out reserveReply
		// A reservation whose response was lost expires by itself, so the call may be
		// repeated.
		earlier, err := c.call(ctx, request{
			method: http.MethodPost, path: "/v1/reserve", waiting: waiting, wait: left, soon: soon, repeat: true, most: maxReserveReply(in.Max),
		}, &out)
		if err == nil && len(in.Finish) > 0 {
			list := results[Changed]{Results: out.Finished}
			finished, err = list.finished(len(in.Finish), earlier)
			in.Finish = nil
		}
		switch {
		case err != nil && finished == nil:
			return nil, nil, err
		case err != nil || len(out.Jobs) > 0 || time.Until(end) <= shortWait:
			return out.Jobs, finished, nil
		}
		// The node ended the wait early because it stops.
		if !sleep(ctx, shortWait) {
			if finished != nil {
				return nil, finished, nil
			}
			return nil, nil, errorf(CodeNotApplied, "the wait for a job was given up: %w", ctx.Err())
		}
	}
}

type reserveReply struct {
	Finished items[result[Changed]] `json:"finished"`
	Jobs     items[Reserved]        `json:"jobs"`
}

func (r *reserveReply) complete() bool {
	return r.Jobs != nil && all(r.Jobs) && (r.Finished == nil || all(r.Finished))
}

// waitEnd returns when a wait that begins now ends: early enough for the answer to come before
// the deadline of ctx.
func waitEnd(ctx context.Context, wait time.Duration) time.Time {
	now := time.Now()
	if deadline, ok := ctx.Deadline(); ok {
		left := deadline.Sub(now)
		wait = min(wait, left-min(left/4, 500*time.Millisecond))
	}
	return now.Add(wait)
}

// shortWait is a remaining wait that is too short for another request.
const shortWait = 50 * time.Millisecond
