package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// headerLeader is the header of each response with the leader's HTTP address.
const headerLeader = "Tarry-Leader"

// request is one call before it is sent.
type request struct {
	method string
	path   string // escaped
	in     any    // nil: no request body
	// waiting returns the body of an attempt that may wait for so long; it is set instead of
	// in.
	waiting func(left time.Duration) any
	// wait is how long the server may wait at the client's request, and work how long it
	// may work. Only wait extends the time for which the call is retried.
	wait, work time.Duration
	// soon, if it is not 0, ends the call so long after its first round of attempts if that had no
	// success, and not only after the wait and the client's patience.
	soon time.Duration
	// repeat is set for an idempotent call, which may be retried after an unknown outcome.
	repeat bool
	// reads is set for a call that changes nothing although it is no GET.
	reads bool
	// most is the longest reply in bytes; 0: maxReply.
	most int64
	// here is set for a call to one of the client's configured nodes, not to any node of
	// their cluster.
	here bool
}

// changes reports whether the call may have changed something when its outcome is unknown.
func (q *request) changes() bool { return q.method != http.MethodGet && !q.reads }

// call sends a request until it gets a response, and decodes the response into out. It also
// reports whether an attempt before the last one may have been done.
func (c *Client) call(ctx context.Context, q request, out any) (earlier bool, err error) {
	body, failure := encode(q.in)
	if failure != nil {
		return false, failure
	}
	if err := ctx.Err(); err != nil {
		return false, errorf(CodeNotApplied, "the call was not sent: %w", err)
	}
	waitEnd := time.Now().Add(q.wait)
	t := &try{client: c, nodes: c.nodes.order, changes: q.changes(), repeat: q.repeat, end: waitEnd.Add(c.patience), soon: q.soon}
	if q.here {
		t.nodes = c.nodes.configured
	}
	t.attempt = func(ctx context.Context, node string) *Error {
		left := max(time.Until(waitEnd), 0)
		if q.waiting != nil { // a further attempt asks only for the rest of the wait
			var failure *Error
			if body, failure = encode(q.waiting(left)); failure != nil {
				return failure
			}
		}
		return c.attempt(ctx, node, c.timeout+left+q.work, q, body, out)
	}
	if q.path != membersPath && !q.here {
		c.meet(ctx)
	}
	err = t.run(ctx)
	return t.earlier, err
}

// ask is call for a response of the type T, which is zero after an error.
func ask[T any](ctx context.Context, c *Client, q request) (out T, err error) {
	if _, err = c.call(ctx, q, &out); err != nil {
		out = *new(T)
	}
	return out, err
}

// read gets the resource at a path.
func read[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, reading(path))
}

// reading is the request for the resource at a path.
func reading(path string) request {
	return request{method: http.MethodGet, path: path, repeat: true}
}

// end removes a resource, of which out tells. If it is not found after an attempt with unknown
// outcome, that is success.
func (c *Client) end(ctx context.Context, method, path string, in, out any) error {
	earlier, err := c.call(ctx, request{method: method, path: path, in: in, repeat: true}, out)
	if earlier && errors.Is(err, CodeNotFound) {
		return nil
	}
	return err
}

// try is the loop of attempts of all calls: at one node after the other, with a pause after each
// round over the nodes.
type try struct {
	client  *Client
	nodes   func() []string // of a round
	attempt func(ctx context.Context, node string) *Error
	changes bool          // an attempt of unknown outcome may have changed something
	repeat  bool          // it may be repeated all the same
	end     time.Time     // no new round begins after it
	soon    time.Duration // as in request
	// answered is the last failure that a node has returned, last the last failure.
	answered, last *Error
	attempts       int
	earlier        bool // an attempt before the last one may have been done
	notified       bool // WithRetrying's function was called
	refusesAll     bool // all failures of this round are of certificates
}

// run makes attempts until one succeeds, fails for good, or the time is over.
func (t *try) run(ctx context.Context) error {
	for round := uint32(0); ; round++ {
		t.refusesAll = true
		for _, node := range t.nodes() {
			if over, err := t.at(ctx, node); over {
				return err
			}
		}
		if round == 0 && t.soon > 0 && time.Until(t.end) > t.soon {
			t.end = time.Now().Add(t.soon)
		}
		if t.refusesAll || !time.Now().Before(t.end) {
			return t.giveUp()
		}
		t.notify()
		if !sleep(ctx, min(max(t.last.RetryAfter, backoff(round)), time.Until(t.end))) {
			return t.ended(ctx)
		}
	}
}

// at makes one attempt. over reports that the call has ended with err.
func (t *try) at(ctx context.Context, node string) (over bool, err error) {
	t.earlier = t.earlier || t.last != nil && t.last.Unknown && t.changes
	t.attempts++
	failure := t.attempt(ctx, node)
	if failure == nil {
		return true, nil
	}
	if failure.Code == CodeUnknown && !t.changes {
		failure.Code, failure.Unknown = CodeNotApplied, false // a read does nothing
	}
	t.last = failure
	t.refusesAll = t.refusesAll && failure.refusesNode
	if failure.Status != 0 {
		t.answered = failure
	} else if ctx.Err() == nil {
		t.client.nodes.failed(node, !failure.unsent)
	}
	if again := failure.notDone() || failure.Unknown && t.repeat; !again {
		return true, t.giveUp()
	}
	if ctx.Err() != nil {
		return true, t.ended(ctx)
	}
	if t.answered != nil {
		t.notify()
	}
	return false, nil
}

// notify calls WithRetrying's function, once.
func (t *try) notify() {
	left := time.Until(t.end)
	if t.notified || left <= 0 {
		return
	}
	t.notified = true
	t.client.retrying(t.giveUp(), left)
}

// giveUp returns the error of a call whose last attempt failed. It must not report that
// nothing was done if an earlier attempt may have been applied.
func (t *try) giveUp() *Error {
	last := t.last
	// The error of a node is more helpful than a failed connection to another one.
	if last.Status == 0 && t.answered != nil && (last.notDone() || t.repeat) {
		t.earlier = t.earlier || last.Unknown && t.changes
		last = t.answered
	}
	if t.earlier && last.notDone() {
		last = errorf(CodeUnknown, "an earlier attempt may have been done; the last one failed: %w", last)
	}
	if last.Status == 0 && t.attempts >= len(t.client.nodes.given) && last.notDone() {
		return errorf(last.Code, "no node answered at %s: %w", t.client.addresses(), last.cause)
	}
	return last
}

// ended is giveUp for a call that its context has ended.
func (t *try) ended(ctx context.Context) error {
	e := *t.giveUp()
	if !errors.Is(&e, ctx.Err()) {
		e.Message = fmt.Sprintf("%v; %s", ctx.Err(), e.Message)
		e.cause = errors.Join(ctx.Err(), e.cause)
	}
	return &e
}

// meet asks a cluster once who its members are, before the second call: a client that
// makes one call needs no other nodes. A failure costs little and is tried again later.
func (c *Client) meet(ctx context.Context) {
	if !c.nodes.wantsMembers() {
		return
	}
	var out memberList
	q := request{method: http.MethodGet, path: membersPath}
	if c.attempt(ctx, c.nodes.order()[0], min(c.timeout, membersTime), q, nil, &out) == nil {
		c.nodes.meet(out.Members)
	}
}

const (
	membersPath = "/v1/cluster/members"
	membersTime = 2 * time.Second
)

func (c *Client) addresses() string {
	names := make([]string, len(c.nodes.given))
	for i, n := range c.nodes.given {
		_, names[i], _ = strings.Cut(n, "://")
	}
	return strings.Join(names, ", ")
}

// encode returns the body of a request; nil for none.
func encode(in any) ([]byte, *Error) {
	if in == nil {
		return nil, nil
	}
	body, err := json.Marshal(in, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, encodeError(err)
	}
	return body, nil
}

// encodeError returns the error for a request that cannot be encoded, mostly because of a
// body that is not JSON.
func encodeError(err error) *Error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return errorf("bad_json", "a body is not valid JSON: %v", syntax.Err)
	}
	return errorf("bad_json", "the request cannot be encoded as JSON: %w", err)
}

// backoff returns the pause after a round of attempts: 50 ms, doubling up to 1 s.
func backoff(round uint32) time.Duration {
	return min(50*time.Millisecond<<min(round, 5), time.Second)
}

// sleep waits for d and returns true, or false once ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt sends the request to one node.
func (c *Client) attempt(ctx context.Context, node string, limit time.Duration, q request, body []byte, out any) *Error {
	late := fmt.Errorf("the limit of %v for one attempt has passed", limit.Round(time.Millisecond))
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	ctx, sent := traced(ctx)
	r, failure := c.newRequest(ctx, q.method, node, q.path, body)
	if failure != nil {
		return failure
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return connectionError(ctx, node, err, sent.Load())
	}
	defer answer.Body.Close()
	c.nodes.replied(node, answer.Header.Get(headerLeader))
	return readReply(ctx, node, answer, cmp.Or(q.most, maxReply), out)
}

// connectionError returns the error of a request of ctx that got no answer. sent reports whether
// it had a connection, on which the node can have received it.
func connectionError(ctx context.Context, node string, err error, sent bool) *Error {
	// What ended ctx says more than what that did to the connection.
	reason, ended := cause(err), ctx.Err() != nil
	if ended {
		reason = context.Cause(ctx)
	}
	switch {
	case !sent:
		e := errorf(CodeNotApplied, "%s cannot be reached: %w", node, reason)
		e.unsent = true
		var certificate *tls.CertificateVerificationError
		e.refusesNode = errors.As(err, &certificate)
		return e
	case ended:
		return errorf(CodeUnknown, "%s did not answer: %w", node, reason)
	}
	return errorf(CodeUnknown, "the connection to %s was lost before it answered: %w", node, reason)
}

// traced returns a context of a request, and a value that becomes true once the request has a
// connection.
func traced(ctx context.Context) (context.Context, *atomic.Bool) {
	connected := new(atomic.Bool)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	return httptrace.WithClientTrace(ctx, trace), connected
}

// cause removes what the HTTP client and the dialer put before the reason, because the
// address is named already.
func cause(err error) error {
	var code syscall.Errno
	if errors.As(err, &code) {
		return code
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// answerError reads the response of a failed call.
func answerError(answer *http.Response, data []byte) *Error {
	var a struct {
		Code    Code   `json:"code"`
		Error   string `json:"error"`
		Field   string `json:"field"`
		Outcome string `json:"outcome"`
	}
	e := &Error{Status: answer.StatusCode}
	if err := json.Unmarshal(data, &a); err != nil || a.Code == "" {
		// The response is from something between the client and the node.
		e.Code, e.Unknown = CodeUnknown, answer.StatusCode >= 500
		e.Message = fmt.Sprintf("the answer is not Tarry's: %s", answer.Status)
		return e
	}
	e.Code, e.Message, e.Field, e.Unknown = a.Code, a.Error, a.Field, a.Outcome == "unknown" || a.Code == "internal"
	if s, err := strconv.ParseInt(answer.Header.Get("Retry-After"), 10, 32); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}
