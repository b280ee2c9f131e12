package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/history"
)

// callTimeout is how long a client waits for a reply, in addition to the wait that it
// requested. A paused node keeps its connections open, so only this ends its clients' calls.
const callTimeout = 3 * time.Second

// caller is one client: its connection, and the node that it uses until a call to it fails.
type caller struct {
	id       int
	nodes    func() []Node
	at       int
	http     *http.Client
	patience time.Duration // how long it waits for the reply to a call that is recorded
	conns    atomic.Int64  // connections made
	rec      *history.Recorder
	token    string // of its own; empty: that of the run, if there is one

	groups uint64 // atomic calls so far
}

func newCaller(id int, c Config) *caller {
	one := &caller{id: id, nodes: c.Nodes, at: id, patience: callTimeout, rec: c.Recorder}
	dialer := &net.Dialer{Timeout: callTimeout}
	one.http = &http.Client{Transport: localcluster.Authorized(&http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		one.conns.Add(1)
		return dialer.DialContext(ctx, network, addr)
	}})}
	return one
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// node returns the address of the next call.
func (c *caller) node() string {
	nodes := c.nodes()
	return nodes[c.at%len(nodes)].HTTP
}

// move switches to the next node.
func (c *caller) move() { c.at++ }

// answer is the reply to one item of a call.
type answer struct {
	Success       bool      `json:"success"`
	Code          string    `json:"code"`
	Error         string    `json:"error"`
	ID            string    `json:"id"`
	Seq           uint64    `json:"seq"`
	Existing      bool      `json:"existing"`
	Replaced      bool      `json:"replaced"`
	Postponed     bool      `json:"postponed"`
	Revision      uint64    `json:"revision"`
	DueAt         time.Time `json:"due_at"`
	ReservedUntil time.Time `json:"reserved_until"`
	Token         string    `json:"token"` // of a client, when it is made or rotated

	Results []answer    `json:"results"` // of a batch
	Jobs    []delivered `json:"jobs"`    // of a reserve or a page
	// Of a page.
	Next       string `json:"next"`
	Incomplete bool   `json:"incomplete"`
	// Of a job.
	Topic    string `json:"topic"`
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	Body     string `json:"body"`

	LastError string `json:"last_error"`
	// Counts of a topic.
	Delayed, Ready, Reserved, Dead uint64
	Added, Deleted                 uint64
	Finished                       finished `json:"finished"` // and of a reserve
	// Counts of a schedule.
	Counts struct{ Started, Skipped, Missed, Refused uint64 } `json:"counts"`
}

type delivered struct {
	ID            string    `json:"id"`
	Seq           uint64    `json:"seq"`
	Topic         string    `json:"topic"`
	Body          string    `json:"body"`
	Token         string    `json:"token"`
	Attempts      int       `json:"attempts"`
	DueAt         time.Time `json:"due_at"`
	ReservedUntil time.Time `json:"reserved_until"`
	// In a page.
	State     string `json:"state"`
	Revision  uint64 `json:"revision"`
	LastError string `json:"last_error"`
}

// name is the job's name in the history: its id or, for a job that was put over beanstalkd's
// protocol and has the server's id, the first word of its body.
func (j *delivered) name() string {
	if strings.HasPrefix(j.ID, "$") {
		first, _, _ := strings.Cut(j.Body, " ")
		return first
	}
	return j.ID
}

// call makes one request to the current node and determines its outcome. A refused
// connection, or a reply that says so, did nothing. After a lost connection, a timeout, or
// a reply that says so, the outcome is unknown. After anything except OK the caller
// switches to the next node, unless the request itself was refused.
func (c *caller) call(ctx context.Context, method, path string, body any, limit time.Duration) (answer, history.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, status, err := c.exchange(ctx, method, path, body)
	switch {
	case err != nil:
		c.move()
		if neverSent(err) {
			return a, history.Fail
		}
		return a, history.Unknown
	case status/100 == 2:
		return a, history.OK
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, status == http.StatusInsufficientStorage:
		c.move()
		return a, history.Fail
	case status/100 == 4:
		return a, history.Fail
	default:
		c.move()
		return a, history.Unknown
	}
}

// maxAnswer bounds the bytes that are read of one reply.
const maxAnswer = 64 << 20

func (c *caller) exchange(ctx context.Context, method, path string, body any) (answer, int, error) {
	var a answer
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return a, 0, fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.node()+path, content)
	if err != nil {
		return a, 0, fmt.Errorf("make request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return a, 0, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return a, 0, err
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, 0, fmt.Errorf("answer %.100q: %w", data, err)
	}
	return a, resp.StatusCode, nil
}

// neverSent reports whether an error proves that no server saw the request.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// itemOutcome returns the outcome of one item of a batch whose call had the outcome whole.
func itemOutcome(whole history.Outcome, a answer) history.Outcome {
	switch {
	case whole != history.OK:
		return whole
	case a.Success:
		return history.OK
	case a.Code == "unknown", a.Code == "internal":
		return history.Unknown
	default:
		return history.Fail
	}
}
