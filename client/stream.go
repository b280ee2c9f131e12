package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// StreamOptions selects the jobs of a stream and its options.
type StreamOptions struct {
	Topics []string
	// Credit limits the jobs of the stream that are reserved at a time, 1 to 1000; 0 means 1.
	// When a reservation ends, in whatever way, the next job may be sent.
	Credit int
	// Max ends the stream after this many jobs; 0: never. The node reserves no more than
	// that.
	Max int
	TTR time.Duration // of the reservations; 0: each job's own
	// Consumer is a name of up to 64 bytes, shown with reserved jobs and in their history.
	Consumer string
	// Heartbeat is the interval of the node's heartbeats on an idle stream, 1 s to 5 min; 0
	// means 15 s. If three are missing the stream continues with another node.
	Heartbeat time.Duration
	// ReleaseOnClose releases unfinished jobs when the connection ends, also because of a
	// failure. Otherwise they become ready when their leases expire.
	ReleaseOnClose bool
}

const (
	defaultHeartbeat = 15 * time.Second
	// silentBeats is how many heartbeats may be missing.
	silentBeats = 3
	// maxEvent bounds one line of a stream: the largest body in its longest form.
	maxEvent = 32 << 20
)

// Stream yields jobs as they become ready, until ctx ends or the caller leaves the loop. If
// a node stops or cannot be reached it continues with the next one. After an error it ends:
// the nodes refuse the stream, or none has responded for the time of WithPatience. It runs on
// the caller's goroutine and reads no job ahead while the loop's body runs. But jobs that the
// node has sent are already reserved, so their leases are running.
func (c *Client) Stream(ctx context.Context, s StreamOptions) iter.Seq2[Reserved, error] {
	return func(yield func(Reserved, error) bool) {
		r := &streamReader{client: c, yield: yield, want: s.wire(), heartbeat: s.Heartbeat}
		if r.heartbeat == 0 {
			r.heartbeat = defaultHeartbeat
		}
		if err := r.run(ctx); err != nil && ctx.Err() == nil {
			yield(Reserved{}, err)
		}
	}
}

type wireStream struct {
	Topics    []string  `json:"topics"`
	Credit    int       `json:"credit"`
	Max       int       `json:"max,omitzero"`
	TTR       *Duration `json:"ttr,omitzero"`
	Heartbeat *Duration `json:"heartbeat,omitzero"`
	OnClose   string    `json:"on_close,omitzero"`
	Consumer  string    `json:"consumer,omitzero"`
}

func (s StreamOptions) wire() wireStream {
	w := wireStream{Topics: s.Topics, Credit: s.Credit, Max: s.Max, TTR: seconds(s.TTR), Heartbeat: seconds(s.Heartbeat), Consumer: s.Consumer}
	if w.Credit == 0 {
		w.Credit = 1
	}
	if s.ReleaseOnClose {
		w.OnClose = "release"
	}
	return w
}

// streamReader reads one stream, over several connections if necessary.
type streamReader struct {
	client    *Client
	yield     func(Reserved, error) bool
	want      wireStream // its Max counts down
	heartbeat time.Duration
	opened    bool // the present connection was accepted
	left      bool // the caller has left the loop, or has got Max jobs
}

// run connects until the caller leaves, ctx ends, or the stream fails.
func (r *streamReader) run(ctx context.Context) error {
	c := r.client
	for notified := false; ; {
		r.opened = false
		var lost *Error // what ended a connection that was accepted
		t := &try{client: c, nodes: c.nodes.order, changes: true, repeat: true, notified: notified, end: time.Now().Add(c.patience)}
		t.attempt = func(ctx context.Context, node string) *Error {
			failure := r.connect(ctx, node)
			if !r.opened || failure == nil || !failure.notDone() && !failure.Unknown {
				return failure
			}
			if lost = failure; failure.Status == 0 && ctx.Err() == nil {
				c.nodes.failed(node, !failure.unsent)
			}
			return nil
		}
		if err := t.run(ctx); err != nil || r.left || ctx.Err() != nil {
			return err
		}
		if notified = lost != nil; notified && c.patience > 0 {
			c.retrying(lost, c.patience)
		}
		sleep(ctx, backoff(0)) // also after a node that accepts streams and ends them
	}
}

var errSilent = errors.New("it has fallen silent")

// connect streams from one node until the connection ends; nil: the node ended the stream.
func (r *streamReader) connect(ctx context.Context, node string) *Error {
	body, err := json.Marshal(r.want)
	if err != nil {
		return errorf("bad_json", "the request cannot be encoded as JSON: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, sent := traced(ctx)
	q, failure := r.client.newRequest(ctx, http.MethodPost, node, "/v1/stream", body)
	if failure != nil {
		return failure
	}
	silence := time.AfterFunc(r.client.timeout, func() { cancel(errSilent) })
	defer silence.Stop()
	answer, err := r.client.http.Do(q)
	if err != nil {
		return connectionError(ctx, node, err, sent.Load())
	}
	defer answer.Body.Close()
	r.client.nodes.replied(node, answer.Header.Get(headerLeader))
	if answer.StatusCode != http.StatusOK {
		return readReply(ctx, node, answer, maxErrorReply, new(done))
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		// The time of the caller's loop does not count as silence of the node.
		silence.Stop()
		over, failure := r.event(lines.Bytes())
		if over || failure != nil {
			return failure
		}
		silence.Reset(silentBeats * r.heartbeat)
	}
	return connectionError(ctx, node, cmp.Or(lines.Err(), io.ErrUnexpectedEOF), true)
}

// event handles one line. over reports that it is the last one.
func (r *streamReader) event(line []byte) (over bool, failure *Error) {
	var e struct {
		Event string `json:"event"`
		Code  Code   `json:"code"`
		Error string `json:"error"`
		Reserved
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return true, errorf(CodeUnknown, "a line of the stream is not understood: %w", err)
	}
	switch e.Event {
	case "open":
		r.opened = true
	case "job":
		more := r.yield(e.Reserved, nil)
		last := r.want.Max == 1
		r.want.Max = max(r.want.Max-1, 0)
		r.left = last || !more
		return r.left, nil
	case "bye":
		return true, nil
	case "error":
		return true, &Error{Status: http.StatusOK, Code: e.Code, Message: e.Error}
	}
	return false, nil
}
