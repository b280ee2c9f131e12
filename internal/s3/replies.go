package s3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// The library reads each reply but an object as a whole, and keeps hundreds of bytes for each
// element of XML in it. A page of a list has 1000 entries of about 16 elements; with the longest
// names it has 3.5 MB.
const (
	maxReply    = 4 << 20
	maxBrackets = 100_000 // each element has one or two
	maxHeader   = 64 << 10
)

var errLongReply = errors.New("the reply of the store is longer than any of a store may be")

// boundedReplies bounds the replies of a store that are no objects.
type boundedReplies struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t boundedReplies) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	object := r.Method == http.MethodGet && r.URL.RawQuery == "" && reply.StatusCode < http.StatusMultipleChoices
	if !object {
		reply.Body = &boundedReply{ReadCloser: reply.Body, bytes: maxReply, brackets: maxBrackets}
	}
	return reply, nil
}

type boundedReply struct {
	io.ReadCloser
	bytes, brackets int // that may follow
}

func (b *boundedReply) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes -= n
	b.brackets -= bytes.Count(p[:n], []byte("<"))
	if b.bytes < 0 || b.brackets < 0 {
		return 0, errLongReply
	}
	return n, err
}
