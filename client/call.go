package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/internal/sleep"
)

// maxAnswer bounds an answer: a full reserve with its bodies in the widest form.
const maxAnswer = 256 << 20

// request is one call before it is sent.
type request struct {
	method string
	path   string // escaped
	in     any    // nil: no request body
	// wait is how long the server may take because it was asked to, and work how
	// long because there is much to do. Only the first prolongs for how long the call
	// is tried again.
	wait, work time.Duration
	// repeat says that sending it twice does no harm, so that an unknown outcome
	// may be answered by another attempt.
	repeat bool
}

// call sends a request until it gets a response, and decodes the response into out. It
// tries the next node when one does not respond or could not do it, and pauses after each
// round. Besides the error it reports whether an earlier attempt may have been done.
func (c *Client) call(ctx context.Context, q request, out any) (earlier bool, err error) {
	var body []byte
	if q.in != nil {
		if body, err = json.Marshal(q.in, jsontext.PreserveRawStrings(true)); err != nil {
			return false, encodeError(err)
		}
	}
	n := uint32(len(c.nodes))
	first := c.current.Load()
	end := time.Now().Add(c.patience + q.wait)
	var answered *Error // the last failure that a node has told of
	// What a node has answered says more than that another was not heard.
	telling := func(failure *Error) *Error {
		if failure.Status == 0 && answered != nil && (failure.notDone() || q.repeat) {
			return answered
		}
		return failure
	}
	told := false
	for attempt := uint32(0); ; attempt++ {
		node := (first + attempt) % n
		limit := c.timeout + q.wait + q.work
		if attempt > 0 && q.wait > 0 { // the node would wait anew
			limit = min(limit, max(time.Until(end), time.Second))
		}
		failure := c.attempt(ctx, c.nodes[node], limit, q, body, out)
		if failure != nil && failure.Code == CodeUnknown && q.method == http.MethodGet {
			failure.Code, failure.Unknown = CodeNotApplied, false // a read does nothing
		}
		if failure == nil {
			c.current.Store(node)
			return earlier, nil
		}
		if failure.Status != 0 {
			answered = failure
		}
		again := failure.notDone() || (failure.Unknown && q.repeat)
		roundOver := attempt%n == n-1
		if !again || ctx.Err() != nil || (roundOver && !time.Now().Before(end)) {
			return earlier, c.giveUp(telling(failure), earlier, attempt+1)
		}
		earlier = earlier || failure.Unknown && q.method != http.MethodGet
		if left := time.Until(end); !told && left > 0 && (answered != nil || roundOver) {
			told = true
			c.retrying(c.giveUp(telling(failure), earlier, attempt+1), left)
		}
		if roundOver && !sleep.For(ctx, min(max(failure.RetryAfter, backoff(attempt/n)), time.Until(end))) {
			return earlier, c.giveUp(telling(failure), earlier, attempt+1)
		}
	}
}

// ask is call for a response of the type T.
func ask[T any](ctx context.Context, c *Client, q request) (out T, err error) {
	_, err = c.call(ctx, q, &out)
	return out, err
}

// read asks for what is at a path.
func read[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, request{method: http.MethodGet, path: path, repeat: true})
}

// end asks for something to go away. That it is not there after an attempt with
// unknown outcome is what was wanted.
func (c *Client) end(ctx context.Context, method, path string, in any) error {
	var out struct{}
	earlier, err := c.call(ctx, request{method: method, path: path, in: in, repeat: true}, &out)
	if earlier && CodeOf(err) == CodeNotFound {
		return nil
	}
	return err
}

// giveUp is the error of a call whose last attempt failed: it must not promise
// that nothing was done when an earlier attempt may have been.
func (c *Client) giveUp(last *Error, earlier bool, attempts uint32) error {
	if earlier && last.notDone() {
		last = errorf(CodeUnknown, "an earlier attempt may have been done; the last one failed: %w", last)
	}
	if last.Status == 0 && int(attempts) >= len(c.nodes) && last.notDone() {
		return errorf(last.Code, "no node answered at %s: %w", c.addresses(), last.cause)
	}
	return last
}

func (c *Client) addresses() string {
	names := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		_, names[i], _ = strings.Cut(n, "://")
	}
	return strings.Join(names, ", ")
}

// encodeError says what in a request is no JSON; a body, most likely.
func encodeError(err error) *Error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return errorf("bad_json", "a body is not valid JSON: %v", syntax.Err)
	}
	return errorf("bad_json", "the request cannot be encoded as JSON: %w", err)
}

// backoff is the pause after a round of attempts: 50 ms, doubling up to 1 s.
func backoff(round uint32) time.Duration {
	return min(50*time.Millisecond<<min(round, 5), time.Second)
}

// attempt sends the request to one node.
func (c *Client) attempt(ctx context.Context, node string, limit time.Duration, q request, body []byte, out any) *Error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var content io.Reader
	if q.in != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, node+q.path, content)
	if err != nil {
		return errorf("invalid_argument", "the request cannot be made: %w", err)
	}
	if q.in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return connectionError(node, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return connectionError(node, err)
	}
	if answer.StatusCode >= 300 {
		return answerError(answer, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Error{Code: CodeUnknown, Unknown: true, cause: err, Message: fmt.Sprintf("the answer of %s is not understood: no node of Tarry answered, or one of another release", node)}
	}
	return nil
}

// connectionError tells apart whether the node can have seen the request.
func connectionError(node string, err error) *Error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return errorf(CodeNotApplied, "%s cannot be reached: %w", node, cause(err))
	}
	return errorf(CodeUnknown, "the connection to %s was lost before it answered: %w", node, cause(err))
}

// cause strips what the HTTP client and the dialer put before the reason: the
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
		Code    string `json:"code"`
		Error   string `json:"error"`
		Field   string `json:"field"`
		Outcome string `json:"outcome"`
	}
	e := &Error{Status: answer.StatusCode}
	if err := json.Unmarshal(data, &a); err != nil || a.Code == "" {
		// Something between the client and the node has answered.
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
