package api

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/internal/addrlimit"
	"tarry/job"
)

// call is one request and its response while a handlerFunc handles it.
type call struct {
	s  *server
	w  http.ResponseWriter
	r  *http.Request
	in *httpx.Buffer // holds the request once it was read
	// decoded is the request's JSON, part of in, once it was decoded: a single object
	// whose fields are all known.
	decoded []byte
	// commandID is the id in a command at POST /, which the response repeats.
	commandID string
	who       *access.Request // nil until the caller is known, and for calls that are open
	needs     access.Need
	share     addrlimit.Share // of the bytes that are buffered; none before the first claim
	claimed   int64           // bytes of it

	out    *httpx.Buffer
	json   writer // the response; its bytes belong to out
	status int
	sent   bool
}

func newCall(s *server, w http.ResponseWriter, r *http.Request) *call {
	x := &call{s: s, w: w, r: r, status: http.StatusOK, out: httpx.Buffers.Get().(*httpx.Buffer)}
	x.json.b = x.out.B[:0]
	return x
}

// close returns the buffers to the pool. The request and the response must not be used
// after it.
func (x *call) close() {
	x.share.Release(x.claimed)
	httpx.Recycle(x.in)
	x.out.B = x.json.b
	httpx.Recycle(x.out)
}

// fail replaces the response by an error.
func (x *call) fail(err error) {
	x.json.b = x.json.b[:0]
	e := x.unauthorized(asError(err))
	if x.reads() && e.Code == job.CodeUnknown {
		e = withRetry(job.NotApplied("the answer could not be read in time, or the leader was lost meanwhile"))
	}
	x.status = statusOf(e)
	if e.Code == access.CodeUnauthorized {
		x.w.Header()["Www-Authenticate"] = challenges
	}
	if e.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", retryAfter(e.RetryAfter))
	}
	if x.status == http.StatusInternalServerError {
		x.s.Logger.Error("request failed", "method", x.r.Method, "path", x.r.URL.Path, "error", err)
	}
	if x.r.URL.Path == "/" {
		x.json.commandFailure(e, x.commandID)
		return
	}
	x.json.beginObject()
	x.json.failure(e)
	x.json.endObject()
}

// challenges are the ways to send a token.
var challenges = []string{`Bearer realm="tarry"`, `Basic realm="tarry", charset="UTF-8"`}

// reads reports whether the call only reads, so that a failure cannot have changed
// anything.
func (x *call) reads() bool {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		return x.r.URL.Path != "/v1/stream"
	default:
		return x.r.URL.Path == getManyPath
	}
}

// headerLeader names the leader in each reply, so that clients can ask it first.
const headerLeader = "Tarry-Leader"

func (x *call) nameLeader() {
	if addr := x.s.Operator.LeaderAddress(); addr != "" {
		x.w.Header()[headerLeader] = []string{addr}
	}
}

// send writes the response. An error means that the client did not get all of it.
func (x *call) send() error {
	x.sent = true
	h := x.w.Header()
	h["Content-Type"] = contentTypeJSON
	h.Set("Content-Length", strconv.Itoa(len(x.json.b)+1))
	x.nameLeader()
	x.w.WriteHeader(x.status)
	x.json.b = append(x.json.b, '\n')
	httpx.AllowWrite(x.w, x.s.Timeout)
	_, err := x.w.Write(x.json.b)
	return err
}

var contentTypeJSON = []string{"application/json"}

// timeout returns the request's context with a timeout of d.
func (x *call) timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.r.Context(), d)
}

// pathValue returns the unescaped value of a path parameter.
func (x *call) pathValue(name string) (string, error) {
	v, err := url.PathUnescape(mux.Vars(x.r)[name])
	if err != nil {
		return "", job.Invalid(name, "in the path is not escaped as a URL asks for: %v", err)
	}
	return v, nil
}

// pathID returns the job id in the path.
func (x *call) pathID() (string, error) {
	id, err := x.pathValue("id")
	if err != nil {
		return "", err
	}
	return id, job.CheckRefID("id", id)
}

// pathTopic returns the topic in the path.
func (x *call) pathTopic() (string, error) {
	topic, err := x.pathValue("topic")
	if err != nil {
		return "", err
	}
	return topic, job.CheckTopic("topic", topic)
}

// logManagement logs a call that manages topics, schedules or the cluster, or a change that
// the dashboard makes: the client,
// the call, and which fields the request set, without their values, which may be secrets.
// Failed calls are warnings, so that repeated ones share a line (see
// cmd/tarry/repeats.go).
func (x *call) logManagement() {
	about := []any{"call", x.r.Method + " " + x.r.URL.EscapedPath(), "from", x.r.RemoteAddr, "status", x.status}
	if x.ofDashboard() {
		about = append(about, "via", "dashboard")
	}
	if names := memberNames(x.decoded); len(names) > 0 {
		about = append(about, "fields", names)
	}
	if x.status >= http.StatusBadRequest {
		x.s.Logger.Warn("management call failed", about...)
		return
	}
	x.s.Logger.Info("management call", about...)
}

// memberNames returns the names of the top-level fields of a JSON object, in order.
func memberNames(object []byte) (names []string) {
	// Decoding has rejected duplicates already; that check takes memory for each name.
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return names
		}
		names = append(names, name.String())
		if dec.SkipValue() != nil {
			return names
		}
	}
}
