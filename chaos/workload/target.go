package workload

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// Target is an HTTP server that topics post their jobs to. It records each post and replies
// like a real one: mostly with success. It must be closed.
type Target struct {
	listener net.Listener
	server   http.Server
	rec      *history.Recorder
	client   int
	seed     uint64
	calm     atomic.Bool
	serving  sync.WaitGroup // Serve, and one for each connection
}

// The settings of the topics. A lease is longer than the timeout, as docs/push.md says.
const (
	pushSecret      = "known to nodes and target"
	pushTimeout     = time.Second
	pushReservation = pushTimeout + 10*time.Second
	pushConcurrency = 8
)

// retryAfter is the Retry-After that the target sometimes sends.
const retryAfter = time.Second

// NewTarget returns a Target that serves on l. client is its number in the history.
func NewTarget(l net.Listener, rec *history.Recorder, client int, seed uint64) *Target {
	t := &Target{listener: l, rec: rec, client: client, seed: seed}
	t.server = http.Server{
		Handler: t,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, lineKey{}, &line{})
		},
		ConnState:   t.follow,
		ReadTimeout: 4 * pushTimeout, IdleTimeout: time.Minute,
	}
	t.serving.Go(func() { _ = t.server.Serve(l) }) // until Close
	return t
}

func (t *Target) follow(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		t.serving.Add(1)
	case http.StateClosed:
		t.serving.Done()
	}
}

// Close refuses further posts and waits until all received ones are recorded.
func (t *Target) Close() error {
	err := t.server.Close()
	t.serving.Wait()
	return err
}

// url returns the URL that a topic posts to.
func (t *Target) url(topic string) string {
	return "http://" + t.listener.Addr().String() + "/" + topic
}

// OwnURLs is a topic some of whose jobs have a URL of their own.
const OwnURLs = "hooks"

// hasOwnURL reports whether a job has a URL of its own.
func (t *Target) hasOwnURL(topic, id string) bool { return topic == OwnURLs && t.dice(id, -1)%2 == 0 }

// jobURL returns the URL of a job that has one of its own.
func (t *Target) jobURL(id string) string { return t.url("job/" + url.PathEscape(id)) }

// pathOf returns the path to which a job must be posted.
func (t *Target) pathOf(topic, id string) string {
	if t.hasOwnURL(topic, id) {
		return "/job/" + id
	}
	return "/" + topic
}

// line is a connection. A node sends the next post over it after it has read the reply to
// the last one.
type line struct{ last *history.Post }

type lineKey struct{}

// ServeHTTP handles one post.
func (t *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op := t.read(r)
	l := r.Context().Value(lineKey{}).(*line)
	if l.last != nil && l.last.Status != 0 {
		l.last.Read = true
	}
	l.last = op.Post
	a := t.choose(op.ID, op.Attempts)
	if a.status != 0 {
		op.Post.Status, op.Post.Answered = a.status, t.rec.Now()
	}
	text := fmt.Sprintf("this was attempt %d", op.Attempts)
	op.Post.Reason = reason(a.status, text)
	if a.status == http.StatusServiceUnavailable && op.Attempts%2 == 1 {
		op.Post.RetryAfter = retryAfter
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	}
	t.rec.Record(op)
	if a.hangs {
		// Wait until the node closes the connection, unless it cannot.
		sleep.For(r.Context(), 3*pushTimeout)
	}
	if a.status == 0 {
		panic(http.ErrAbortHandler) // closes the connection
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, text) // not empty: only then a used connection shows that it was read
}

// reason returns the error that a job keeps of a reply, as docs/push.md says.
func reason(status int, text string) string {
	whole := fmt.Sprintf("push: %d %s", status, http.StatusText(status))
	switch status / 100 {
	case 0, 2:
		return ""
	case 3:
		return whole + "; redirects are not followed"
	default:
		return whole + ": " + text
	}
}

// choice is the reply to a post; status 0: none.
type choice struct {
	status int
	hangs  bool
}

// choose returns the reply to an attempt, always the same for one seed.
func (t *Target) choose(id string, attempt int) choice {
	switch dice := t.dice(id, attempt) % 100; {
	case t.refuses(id):
		return choice{status: http.StatusBadRequest}
	case t.calm.Load(), dice < 80:
		return choice{status: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted}[dice%3]}
	case dice < 86:
		return choice{status: http.StatusServiceUnavailable}
	case dice < 92:
		return choice{status: []int{http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError}[dice%3]}
	case dice < 94:
		return choice{status: http.StatusFound}
	case dice < 97:
		return choice{hangs: true}
	default:
		return choice{} // the post is accepted, but there is no reply
	}
}

// refuses reports whether the target refuses each attempt of a job.
func (t *Target) refuses(id string) bool { return t.dice(id, 0)%12 == 0 }

func (t *Target) dice(id string, attempt int) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%d %d %s", t.seed, attempt, id)
	return h.Sum32() >> 8
}

// read returns the delivery of a post.
func (t *Target) read(r *http.Request) history.Op {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	at := t.rec.Now()
	h := r.Header
	op := history.Op{
		Kind: history.Deliver, Client: t.client, Invoke: at, Complete: at, Body: string(body), TTR: pushReservation,
		Header: h.Get("Tarry-Header-" + headerName), Post: &history.Post{},
	}
	flaw := func(broken bool, what string, args ...any) {
		if broken && op.Post.Flaw == "" {
			op.Post.Flaw = fmt.Sprintf(what, args...)
		}
	}
	flaw(err != nil, "a body that ends early: %v", err)
	flaw(r.Method != http.MethodPost, "the method %s", r.Method)
	flaw(h.Get("Content-Type") != "application/octet-stream", "the content type %q", h.Get("Content-Type"))
	op.ID, err = url.PathUnescape(h.Get("Tarry-Job-Id"))
	flaw(err != nil || op.ID == "", "the id %q", h.Get("Tarry-Job-Id"))
	op.Topic, err = url.PathUnescape(h.Get("Tarry-Topic"))
	flaw(err != nil || t.pathOf(op.Topic, op.ID) != r.URL.Path, "the topic %q, at %s", h.Get("Tarry-Topic"), r.URL.Path)
	op.Attempts, err = strconv.Atoi(h.Get("Tarry-Attempt"))
	flaw(err != nil, "the attempt %q", h.Get("Tarry-Attempt"))
	due, err := time.Parse(time.RFC3339, h.Get("Tarry-Due"))
	flaw(err != nil, "the due instant %q", h.Get("Tarry-Due"))
	op.Due = due.UnixMicro()
	sent, err := strconv.ParseInt(h.Get("Tarry-Timestamp"), 10, 64)
	op.Post.Sent = time.Unix(sent, 0).UnixMicro()
	flaw(err != nil || op.Post.Sent > at, "the timestamp %q", h.Get("Tarry-Timestamp"))
	flaw(!signed(h, body), "the signature %q", h.Get("Tarry-Signature"))
	return op
}

// signed checks the signature as the docs tell receivers to.
func signed(h http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(pushSecret))
	mac.Write([]byte(h.Get("Tarry-Timestamp") + "\n" + h.Get("Tarry-Job-Id") + "\n" + string(body)))
	given, err := hex.DecodeString(strings.TrimPrefix(h.Get("Tarry-Signature"), "v1="))
	return err == nil && strings.HasPrefix(h.Get("Tarry-Signature"), "v1=") && hmac.Equal(given, mac.Sum(nil))
}

// Calm makes the target accept every post from now on.
func (t *Target) Calm() { t.calm.Store(true) }
