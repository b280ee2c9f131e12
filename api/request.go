package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/semaphore"

	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/internal/addrlimit"
	"tarry/job"
)

const (
	// maxBatchRequest bounds the text of a batch request.
	maxBatchRequest = 32 << 20
	// maxSmallRequest bounds requests that carry no body of a job.
	maxSmallRequest = 512 << 10
	// jsonRoom is the longest form of one character of a body in JSON (\u0001), so that
	// every body within the limit can be sent as JSON.
	jsonRoom = 6
)

// largeRequest is the size from which decoding a request takes milliseconds.
const largeRequest = 64 << 10

// newDecodeSlots bounds the large requests that are decoded at a time by the number of
// processors. With hundreds at a time, Raft's heartbeats would be delayed by all of them, and
// the leader would lose its leadership.
func newDecodeSlots() *semaphore.Weighted {
	return semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
}

func (s *server) maxJobRequest() int64 { return jsonRoom*int64(s.MaxBodyBytes) + maxSmallRequest }

// read reads the whole request, at most limit bytes. The result is valid until the call is
// closed.
func (x *call) read(limit int64) ([]byte, error) {
	if enc := x.r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, job.Errorf(codeEncoding, "Content-Encoding %.40q is not supported; send the JSON without an encoding", enc)
	}
	if x.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if err := x.received(x.r.ContentLength); err != nil {
		return nil, err
	}
	x.in = httpx.Buffers.Get().(*httpx.Buffer)
	b := x.in.B[:0]
	defer func() { x.missing(len(b)) }()
	src := http.MaxBytesReader(x.w, x.r.Body, limit)
	started := time.Now()
	for {
		room := httpx.NextRoom(int64(len(b)), x.r.ContentLength)
		if err := x.claim(room); err != nil {
			return nil, err
		}
		b = httpx.Grown(b, int(room))
		x.in.B = b
		end := len(b) + int(room)
		if x.r.ContentLength != 0 { // otherwise the server watches the connection already
			httpx.AllowRead(x.w, started, x.readTime(int64(end)))
		}
		for len(b) < end {
			n, err := src.Read(b[len(b):end])
			b = b[:len(b)+n]
			if err == io.EOF {
				if err := x.arrived(len(b)); err != nil {
					return b, err
				}
				return b, x.s.decideAgain(x, len(b))
			}
			if err != nil {
				_ = x.arrived(len(b))
				return nil, x.readError(err, limit)
			}
		}
	}
}

// readTime returns how long so many bytes of the request may take to arrive.
func (x *call) readTime(n int64) time.Duration {
	if x.who.Crowded() {
		return httpx.CrowdedRead
	}
	return min(httpx.ReadTime(n), x.s.Timeout)
}

// received counts a request by the limits of its token before it is read. Its size is negative
// while it is not known.
func (x *call) received(size int64) error {
	if x.who == nil || size == 0 {
		return nil
	}
	return x.s.Access.Received(x.who, max(size, 1), false)
}

// arrived counts the rest of a request whose size was not announced, once it is read.
func (x *call) arrived(size int) error {
	if x.who == nil || x.r.ContentLength >= 0 || size == 0 {
		return nil
	}
	return x.s.Access.Received(x.who, int64(size)-1, true)
}

// missing takes back what was counted of a request of which only size bytes have arrived.
func (x *call) missing(size int) {
	if x.who != nil {
		x.s.Access.Missing(x.who, x.r.ContentLength-int64(size))
	}
}

func (x *call) claim(n int64) error {
	if x.share == (addrlimit.Share{}) {
		x.share = x.s.buffered.Of(x.r.RemoteAddr)
	}
	if !x.share.TryAcquire(n) {
		return job.Errorf(job.CodeOverloaded, "this node has the maximum of %d bytes of requests in memory, of which one address may use half; try again soon, or use another node", x.s.buffered.Total())
	}
	x.claimed += n
	return nil
}

func (x *call) unclaim(n int64) {
	x.share.Release(n)
	x.claimed -= n
}

func (x *call) readError(err error, limit int64) error {
	var tooMany *http.MaxBytesError
	switch {
	case errors.As(err, &tooMany):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded) && x.who.Crowded():
		return job.Errorf(codeTooSlow, "the request did not arrive within %v, which is as long as it may take on a connection above the limit of its token", httpx.CrowdedRead)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return job.Errorf(codeTooSlow, "the request did not arrive in time; it may take %v, a second more for each %d bytes, and %v at most", httpx.ReadGrace, httpx.SlowestRead, x.s.Timeout)
	}
	return job.Errorf(job.CodeInvalid, "the request is incomplete")
}

func tooLarge(limit int64) error {
	return job.Errorf(job.CodeTooLarge, "the request has more than %d bytes, which is the limit of this call", limit)
}

// decode reads a request of at most limit bytes into v, a pointer to a struct. It rejects
// unknown fields, duplicate fields, wrong types and anything after the object, and names
// the invalid field.
func (x *call) decode(limit int64, v any, options ...json.Options) error {
	data, err := x.read(limit)
	if err != nil {
		return err
	}
	return x.decodeInTurn(data, v, options...)
}

// decodeOptional is decode, but an empty request body means {}.
func (x *call) decodeOptional(limit int64, v any) error {
	if x.r.ContentLength == 0 {
		return nil
	}
	data, err := x.read(limit)
	if err != nil || len(data) == 0 {
		return err
	}
	return x.decodeInTurn(data, v)
}

// refuseBody rejects a non-empty request body of a call that takes none, except for these
// query parameters.
func (x *call) refuseBody(query []string) error {
	err := x.decodeOptional(maxSmallRequest, &struct{}{})
	switch e := asError(err); {
	case err == nil || e.Code != job.CodeBadJSON && e.Code != job.CodeInvalid:
		return err
	case e.Field == "":
		return job.Errorf(job.CodeInvalid, "the request has a body, but this call takes none; its query parameters: %s", wire.OrNone(query))
	default:
		return job.Invalid(e.Field, "is not a field of this call, which takes no request body; its query parameters: %s", wire.OrNone(query))
	}
}

// decodeInTurn waits for its turn when the request is large.
func (x *call) decodeInTurn(data []byte, v any, options ...json.Options) error {
	if len(data) > largeRequest {
		if err := x.s.decoding.Acquire(x.r.Context(), 1); err != nil {
			return job.NotApplied("the client went away before its request was worked on: %w", err)
		}
		defer x.s.decoding.Release(1)
	}
	if err := wire.Decode(data, v, options...); err != nil {
		return err
	}
	x.decoded = data
	return nil
}
