package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"

	"tarry/job"
)

const (
	// maxBatchRequest bounds the text of a batch request.
	maxBatchRequest = 32 << 20
	// maxSmallRequest bounds requests that carry no body of a job.
	maxSmallRequest = 512 << 10
	// jsonRoom is what one character of a body may grow to when it is escaped
	// (\u0001), so that every body within the limit can be sent as JSON.
	jsonRoom = 6
)

// intake bounds the memory that requests take while they are worked on.
type intake struct {
	limit int64
	held  atomic.Int64
}

// largeRequest is when a request's text takes milliseconds to decode.
const largeRequest = 64 << 10

// turns bounds the large requests that are decoded at a time to what the
// processors can do. With hundreds at it each of Raft's heartbeats would wait
// behind all of them, and the leader would lose its office.
type turns chan struct{}

func newTurns() turns { return make(turns, runtime.GOMAXPROCS(0)) }

// take waits for a turn, which end gives back. An error means that the client
// went away before.
func (t turns) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return job.NotApplied("the client went away before its request was worked on: %w", ctx.Err())
	}
}

func (t turns) end() { <-t }

// claim takes n bytes of the budget, or nothing and reports false.
func (in *intake) claim(n int64) bool {
	if in.held.Add(n) <= in.limit {
		return true
	}
	in.held.Add(-n)
	return false
}

func (in *intake) release(n int64) {
	if n != 0 {
		in.held.Add(-n)
	}
}

func (s *server) maxJobRequest() int64 { return jsonRoom*int64(s.MaxBodyBytes) + maxSmallRequest }

// read reads the whole request, at most limit bytes. What it returns is valid
// until the exchange is closed.
func (x *exchange) read(limit int64) ([]byte, error) {
	if enc := x.r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, job.Errorf(codeEncoding, "Content-Encoding %.40q is not taken; send the JSON as it is", enc)
	}
	if x.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if x.r.ContentLength != 0 { // else the server watches the connection already
		allowRead(x.w, x.s.Timeout)
	}
	x.in = buffers.Get().(*buffer)
	b := x.in.b[:0]
	src := http.MaxBytesReader(x.w, x.r.Body, limit)
	// One byte more than announced, so that the end is seen without growing.
	room := max(x.r.ContentLength, 511) + 1
	for {
		if err := x.claim(room); err != nil {
			return nil, err
		}
		b = slices.Grow(b, int(room))
		x.in.b = b
		end := len(b) + int(room)
		for len(b) < end {
			n, err := src.Read(b[len(b):end])
			b = b[:len(b)+n]
			if err == io.EOF {
				return b, nil
			}
			if err != nil {
				return nil, readError(err, limit)
			}
		}
		room = int64(len(b))
	}
}

func (x *exchange) claim(n int64) error {
	if !x.s.intake.claim(n) {
		return job.Errorf(job.CodeOverloaded, "this node holds as many bytes of requests as it may (%d); try again soon, or another node", x.s.intake.limit)
	}
	x.claimed += n
	return nil
}

func readError(err error, limit int64) error {
	var tooMany *http.MaxBytesError
	if errors.As(err, &tooMany) {
		return tooLarge(limit)
	}
	return job.Errorf(job.CodeInvalid, "the request broke off before its end: %w", err)
}

func tooLarge(limit int64) error {
	return job.Errorf(job.CodeTooLarge, "the request has more than %d bytes, which is the limit of this call", limit)
}
