package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"tarry/internal/sleep"
)

// Stream asks for jobs as they become ready.
type Stream struct {
	Topics []string
	// Credit is how many jobs of the stream may be unfinished at one time, 1 to
	// 1000; 0 means 1. When one ends, in whatever way, the next may come.
	Credit int
	// Max ends the stream after so many jobs, none of which is reserved in vain;
	// 0: never.
	Max int
	TTR time.Duration // how long the reservations last; 0: each job's own
	// Consumer says who asks, in up to 64 bytes, shown with its jobs and kept in their history.
	Consumer string
	// Heartbeat is how often the node shows on a silent stream that it is there,
	// 1 s to 5 min; 0 means 15 s. After three of them the stream goes on with
	// another node.
	Heartbeat time.Duration
	// ReleaseOnClose gives unfinished jobs back when the connection ends, also
	// when it broke; otherwise they come back when their TTR ends.
	ReleaseOnClose bool
}

const (
	defaultHeartbeat = 15 * time.Second
	// silentBeats is how many heartbeats may be missing.
	silentBeats = 3
	// maxEvent bounds one line of a stream: the largest body in its widest form.
	maxEvent = 32 << 20
)

// Stream gives jobs as they become ready, until ctx ends or the caller leaves the
// loop. When a node stops or cannot be reached it goes on with the next one. An
// error is the last that it gives: the nodes refuse the stream, or none has
// answered for as long as WithPatience says. It runs on the caller's goroutine: no
// job is read ahead while the loop's body runs, but those that were sent are
// reserved already, so their time to run counts.
func (c *Client) Stream(ctx context.Context, s Stream) iter.Seq2[Reserved, error] {
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

func (s Stream) wire() wireStream {
	w := wireStream{Topics: s.Topics, Credit: s.Credit, Max: s.Max, TTR: seconds(s.TTR), Heartbeat: seconds(s.Heartbeat), Consumer: s.Consumer}
	if w.Credit == 0 {
		w.Credit = 1
	}
	if s.ReleaseOnClose {
		w.OnClose = "release"
	}
	return w
}

// streamReader reads one stream over one connection after the other.
type streamReader struct {
	client    *Client
	yield     func(Reserved, error) bool
	want      wireStream // its Max counts down
	heartbeat time.Duration
	opened    bool // the present connection was accepted
	left      bool // the caller has left the loop, or has all it wanted
}

// run connects until the caller leaves, ctx ends or there is no more hope.
func (r *streamReader) run(ctx context.Context) error {
	c := r.client
	end := time.Now().Add(c.patience)
	told, attempts := false, 0 // attempts since a connection was accepted
	for round := uint32(0); ; round++ {
		nodes := c.nodes.order()
		for i, node := range nodes {
			failure := r.connect(ctx, node)
			if failure != nil && failure.Status == 0 && ctx.Err() == nil {
				c.nodes.failed(node, !failure.unsent)
			}
			attempts++
			if r.opened {
				r.opened, told, attempts, round, end = false, false, 0, 0, time.Now().Add(c.patience)
			}
			roundOver := i == len(nodes)-1
			switch {
			case r.left || ctx.Err() != nil:
				return nil
			case failure != nil && !failure.notDone() && !failure.Unknown:
				return failure
			case failure != nil && roundOver && attempts > 0 && !time.Now().Before(end):
				return c.giveUp(failure, false, attempts)
			}
			if attempts > 0 && !roundOver {
				continue
			}
			if left := time.Until(end); failure != nil && !told && left > 0 {
				told = true
				c.retrying(c.giveUp(failure, false, max(attempts, 1)), left)
			}
			sleep.For(ctx, backoff(round)) // also after a node that takes streams and ends them
			break
		}
	}
}

// connect streams from one node until the connection ends; nil: the node said so.
func (r *streamReader) connect(ctx context.Context, node string) *Error {
	body, err := json.Marshal(r.want)
	if err != nil {
		return errorf("bad_json", "the request cannot be encoded as JSON: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, node+"/v1/stream", bytes.NewReader(body))
	if err != nil {
		return errorf("invalid_argument", "the request cannot be made: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	silence := time.AfterFunc(r.client.timeout, cancel)
	defer silence.Stop()
	answer, err := r.client.http.Do(q)
	if err != nil {
		return connectionError(node, err)
	}
	defer answer.Body.Close()
	r.client.nodes.replied(node, answer.Header.Get(headerLeader))
	if answer.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		if err != nil {
			return connectionError(node, err)
		}
		return answerError(answer, data)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		// The caller may take its time; only the node's counts.
		silence.Stop()
		over, failure := r.event(lines.Bytes())
		if over || failure != nil {
			return failure
		}
		silence.Reset(silentBeats * r.heartbeat)
	}
	return connectionError(node, cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

// event deals with one line. over says that it is the last one.
func (r *streamReader) event(line []byte) (over bool, failure *Error) {
	var e struct {
		Event string `json:"event"`
		Code  string `json:"code"`
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
