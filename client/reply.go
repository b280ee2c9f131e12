package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The longest replies of a node, in bytes, so that something else cannot fill the client's
// memory. They are longest when bodies are control characters, of which JSON makes six bytes
// each.
const (
	maxReply      = 8 << 20   // what has no body of a job
	maxJobReply   = 32 << 20  // a job with a body of 4 MiB; 1000 results, settings, schedules or jobs without bodies
	maxPageReply  = 64 << 20  // a page of jobs: less than 8 MiB of bodies, headers and reasons
	maxJobsReply  = 160 << 20 // 1000 reserved jobs: 16 MiB of bodies, 8 MiB of headers
	maxErrorReply = 64 << 10
	// maxItems bounds the jobs, results, topics or schedules of a reply.
	maxItems = 1000
)

// maxReserveReply is the longest reply to a reserve of so many jobs.
func maxReserveReply(jobs int) int64 {
	return min(int64(jobs), maxJobsReply/maxJobReply) * maxJobReply
}

// completer is a reply of which a part may be absent: then it is no reply of Tarry.
type completer interface{ complete() bool }

// readReply decodes the response of a node into out.
func readReply(ctx context.Context, node string, answer *http.Response, most int64, out any) *Error {
	in := &bounded{from: answer.Body, left: most}
	if answer.StatusCode >= 300 {
		in.left = maxErrorReply
		data, err := io.ReadAll(in)
		if err != nil && in.failed != nil {
			return connectionError(ctx, node, in.failed, true)
		}
		return answerError(answer, data)
	}
	reflect.ValueOf(out).Elem().SetZero() // an earlier attempt may have failed halfway
	err := json.UnmarshalRead(in, out)
	switch c, _ := out.(completer); {
	case in.failed != nil:
		return connectionError(ctx, node, in.failed, true)
	case errors.Is(err, errTooLong):
		return errorf(CodeUnknown, "%s is no node of Tarry: %w", node, fmt.Errorf("its answer is longer than %d bytes", most))
	case err != nil:
		return &Error{Code: CodeUnknown, Unknown: true, cause: err, Message: fmt.Sprintf("the answer of %s is not understood: no node of Tarry answered, or one of another release", node)}
	case c != nil && !c.complete():
		return errorf(CodeUnknown, "the answer of %s is not understood: %w", node, errIncomplete)
	}
	return nil
}

var errIncomplete = errors.New("it does not say what was done")

var errTooLong = errors.New("it is too long")

// bounded reads up to left bytes, and fails if there are more.
type bounded struct {
	from   io.Reader
	left   int64
	failed error // of the connection
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n, err
}

// items is a list in a reply. Three bytes of JSON can become an item of hundreds.
type items[T any] []T

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *items[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if in.PeekKind() != '[' {
		return json.UnmarshalDecode(in, (*[]T)(l))
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	*l = items[T]{}
	for in.PeekKind() != ']' {
		if len(*l) == maxItems {
			return fmt.Errorf("it has more than %d items", maxItems)
		}
		*l = append(*l, *new(T))
		if err := json.UnmarshalDecode(in, &(*l)[len(*l)-1]); err != nil {
			return err
		}
	}
	_, err := in.ReadToken()
	return err
}
