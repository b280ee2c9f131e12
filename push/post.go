package push

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// responseBytes bounds what is read of a response, reasonBytes what is kept of it.
	responseBytes = 4 << 10
	reasonBytes   = 200

	maxRetryAfter = time.Hour
)

// newClient returns a client for posts. It connects directly to addresses that the list
// allows. It uses no proxy, follows no redirect and decompresses nothing. TLS is as options
// say, with the name of the server.
func newClient(a Allow, options *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return a.dial(whilePosting(ctx), network, addr)
			},
			DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return a.dialTLS(whilePosting(ctx), network, addr, options)
			},
			MaxIdleConns: MaxPosts, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
			ForceAttemptHTTP2: slices.Contains(options.NextProtos, http2),
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Names of protocols in TLS.
const http1, http2 = "http/1.1", "h2"

// topicTLS and jobTLS are the options of posts to the URL of a topic and to that of a job.
// There may be any number of the latter's servers, and the Transport does not bound idle
// connections of HTTP/2.
func topicTLS() *tls.Config { return &tls.Config{NextProtos: []string{http2, http1}} }
func jobTLS() *tls.Config   { return &tls.Config{NextProtos: []string{http1}} }

// posting is the key of the context of a post, in the values of the same.
type posting struct{}

// whilePosting returns the context of the post for which a connection is made. The
// Transport would go on with the connection when the post has ended, in case another one
// can use it: with many targets that do not answer, these would add up.
func whilePosting(ctx context.Context) context.Context {
	if post, ok := ctx.Value(posting{}).(context.Context); ok {
		return post
	}
	return ctx
}

type outcome struct {
	label      string        // for metrics
	answered   bool          // the target responded, however that was
	status     int           // of the response
	reason     string        // why it failed; empty: it succeeded
	detail     error         // of a failure without a response: for the node's log, not for the job's owner
	retryAfter time.Duration // what the target requests; 0: nothing
}

// targetOf returns the URL that a job is posted to, and its host and port; else the outcome
// of a job that must not be posted.
func (a Allow) targetOf(t *jobpb.PushTarget, j *jobpb.Reserved) (target, host string, o outcome) {
	target, field := t.Url, "push.url"
	if own := j.Options.GetPushUrl(); own != "" {
		if target, field = own, "push_url"; !t.JobUrls {
			return "", "", outcome{label: "no_target", reason: "push: it has a push_url, and the push of its topic does not have job_urls"}
		}
	}
	if target == "" {
		return "", "", outcome{label: "no_target", reason: "push: it has no push_url, and the push of its topic has no url"}
	}
	host, err := a.destination(field, target)
	if err != nil {
		return "", "", outcome{label: "blocked", reason: "push: " + err.Error()}
	}
	return target, host, outcome{}
}

// post sends a job to the target and reads the response. A traceparent replaces the job's,
// unless it is empty.
func post(ctx context.Context, c *http.Client, t *jobpb.PushTarget, target string, j *jobpb.Reserved, parent string) outcome {
	timeout := timeoutOf(t)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := newRequest(context.WithValue(ctx, posting{}, ctx), t, target, j, time.Now())
	if err != nil {
		return outcome{label: "error", reason: "push: " + clean(err.Error())}
	}
	if parent != "" {
		q.Header.Set(job.HeaderTraceParent, parent)
	}
	resp, err := c.Do(q)
	if err != nil {
		return failed(ctx, err, timeout)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, responseBytes)) // a part is enough
	o := outcome{answered: true, status: resp.StatusCode, retryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	o.reason = "push: " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	switch resp.StatusCode / 100 {
	case 2:
		return outcome{label: "taken", answered: true, status: resp.StatusCode}
	case 3:
		o.label = "redirect"
		o.reason += "; redirects are not followed"
	default:
		o.label = strconv.Itoa(resp.StatusCode/100) + "xx"
		if s := clean(string(text)); s != "" {
			o.reason += ": " + s
		}
	}
	return o
}

func newRequest(ctx context.Context, t *jobpb.PushTarget, target string, j *jobpb.Reserved, now time.Time) (*http.Request, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(j.Body))
	if err != nil {
		return nil, err
	}
	id, timestamp := url.PathEscape(j.Id), strconv.FormatInt(now.Unix(), 10)
	h := q.Header
	h.Set("User-Agent", "tarry")
	h.Set("Content-Type", "application/octet-stream")
	if j.BodyKind == jobpb.BodyKind_BODY_JSON {
		h.Set("Content-Type", "application/json")
	}
	h.Set(headerID, id)
	h.Set(headerTopic, url.PathEscape(j.Topic))
	h.Set(headerAttempt, strconv.FormatUint(uint64(j.Attempts), 10))
	h.Set(headerDue, time.UnixMilli(j.DueMs).UTC().Format("2006-01-02T15:04:05.000Z"))
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, sign(t.Secret, timestamp, id, j.Body))
	addHeaders(h, j.Options.GetHeaders())
	addTrace(h, j.Options)
	return q, nil
}

// failed returns why there was no response. The reason names no address and no resolver: it is for
// whoever may read the job, and the network is the operator's.
func failed(ctx context.Context, err error, timeout time.Duration) outcome {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the rest is the URL, which may have secrets
	}
	o := outcome{label: "error", detail: err}
	switch {
	case errors.As(err, new(*blockedError)):
		o.label, o.reason = "blocked", "push: the target's address may not be reached: --push-allow does not list it"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.label, o.reason = "timeout", fmt.Sprintf("push: no answer within %v", timeout)
	case errors.As(err, new(*net.DNSError)):
		o.reason = "push: the target's name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		o.reason = "push: the target refused the connection"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		o.reason = "push: the target's certificate is not accepted"
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		o.reason = "push: the target closed the connection without a reply"
	default:
		o.reason = "push: the target cannot be reached"
	}
	return o
}

// clean turns untrusted text into one short line.
func clean(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) > reasonBytes {
		text = strings.ToValidUTF8(text[:reasonBytes], "") + "..."
	}
	return text
}

// retryAfter parses the header of that name; 0 when it is missing or invalid.
func retryAfter(text string, now time.Time) time.Duration {
	d := time.Duration(0)
	if s, err := strconv.ParseInt(text, 10, 32); err == nil {
		d = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	if d < 0 || d > maxRetryAfter {
		return 0
	}
	return d
}

// timeoutOf returns how long a target may take to respond.
func timeoutOf(t *jobpb.PushTarget) time.Duration {
	if t.TimeoutMs == 0 {
		return job.DefaultPushTimeout
	}
	return time.Duration(t.TimeoutMs) * time.Millisecond
}

// concurrencyOf returns how many posts to a target may be in flight.
func concurrencyOf(t *jobpb.PushTarget) int {
	if t.Concurrency == 0 {
		return job.DefaultPushConcurrency
	}
	return int(t.Concurrency)
}
