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

	"tarry/chaos/history"
)

// callTimeout is how long a client waits for an answer beside the wait it asked
// for. A paused node keeps connections open, so this is what frees its clients.
const callTimeout = 3 * time.Second

// caller is one client: a connection of its own, and the node it prefers until
// that node fails it.
type caller struct {
	id       int
	nodes    func() []Node
	at       int
	http     *http.Client
	patience time.Duration // how long it waits for the answer to a call that is recorded
	conns    atomic.Int64  // connections made
	rec      *history.Recorder

	groups uint64 // calls made that are done as a whole or not at all
}

func newCaller(id int, c Config) *caller {
	one := &caller{id: id, nodes: c.Nodes, at: id, patience: callTimeout, rec: c.Recorder}
	dialer := &net.Dialer{Timeout: callTimeout}
	one.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		one.conns.Add(1)
		return dialer.DialContext(ctx, network, addr)
	}}}
	return one
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// node is the address that the next call goes to.
func (c *caller) node() string {
	nodes := c.nodes()
	return nodes[c.at%len(nodes)].HTTP
}

// move prefers the next node from now on.
func (c *caller) move() { c.at++ }

// answer is what came back for one item of a call.
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

	Results []answer    `json:"results"` // of a batch
	Jobs    []delivered `json:"jobs"`    // of a reserve
	// Of a job.
	Topic    string `json:"topic"`
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	Body     string `json:"body"`

	LastError string `json:"last_error"`
	// Counts of a topic.
	Delayed, Ready, Reserved, Dead uint64
	Added, Finished, Deleted       uint64
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
}

// name is what the history calls the job: its id or, for one that was put over
// beanstalkd and has an id of the server's, the first word of its body.
func (j *delivered) name() string {
	if strings.HasPrefix(j.ID, "$") {
		first, _, _ := strings.Cut(j.Body, " ")
		return first
	}
	return j.ID
}

// call makes one request to the preferred node and judges its outcome: refused
// connections and answers that say so did nothing; a lost connection, a timeout,
// or an answer that says so leave it open. After anything but OK the caller
// prefers the next node, unless the request itself was refused.
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

// maxAnswer bounds what is read of one answer.
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

// itemOutcome is the outcome of one item of a batch whose call had outcome whole.
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
