package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/api/openapi"
	"tarry/api/wire"
	"tarry/internal/addrlimit"
	"tarry/internal/secretkeys"
	"tarry/job"
)

// Options configures the handler. Queue and Operator are required.
type Options struct {
	Queue    Queue
	Operator Operator
	Logger   *slog.Logger // nil: nothing is logged

	// MaxBodyBytes limits the body of one job; 0 means job.DefaultMaxBodyBytes.
	MaxBodyBytes int
	// MaxBufferedBytes limits the memory for requests, and for the bodies of jobs in
	// responses, over all connections. The connections of one client address may use half
	// of it. Requests beyond it get 429. 0 means 256 MiB.
	MaxBufferedBytes int64
	// Timeout bounds each of reading a request, handling it, and writing the response. The
	// wait of a reserve is added to it. After a timeout of the handling the outcome is
	// unknown. 0 means 30 s.
	Timeout time.Duration
	// OperatorTimeout does the same for the calls under /v1/cluster; 0 means 2 min.
	OperatorTimeout time.Duration

	// Hosts are the host names that requests to this node may have, in addition to IP
	// addresses and localhost. *X allows all names that end with X.
	Hosts []string
	// Origins are the origins of other pages that may call this node from a browser.
	Origins httpx.Origins

	// CheckPush returns an error, for the client, if this node may not post to the URL
	// target, which is in the field. An empty one is checked like any that is allowed. nil:
	// push is off.
	CheckPush func(field, target string) error

	// Secrets seals the secrets of push targets before they are proposed; nil: they stay plain.
	Secrets *secretkeys.Ring

	// About describes this node's build and settings.
	About job.About

	// RecentLog returns the last lines of this node's log, the oldest first; nil: it keeps none.
	RecentLog func() []string
	// LogLevel is the lowest level that this node logs. nil: a variable that nothing looks at.
	LogLevel *slog.LevelVar

	// Access checks who may do what. nil: everybody may do everything, except to make tokens.
	Access *access.Control

	// CheckBootstrap reports whether a secret is that of the file BootstrapFile. nil: none is.
	CheckBootstrap func(secret string) bool
	// AuthReset is the file with which a first token is made again. nil: there is none.
	AuthReset AuthReset

	// Metrics serves /metrics; nil: that path is not found.
	Metrics http.Handler
	// UI returns the handler of the paths below /ui/, which makes its calls to the handler
	// that it is given, the API. nil: those paths are not found.
	UI func(calls http.Handler) http.Handler
	// Registry gets the handler's own metrics; nil: they are not published.
	Registry prometheus.Registerer

	// Draining reports whether the node drains before it stops. Then it is not ready, and
	// connections are closed after their response. A reserve that fails with not_applied
	// during that time gets a response without jobs. It must not block. nil: never.
	Draining func() bool
	// Drained returns a channel that is closed once Draining reports true; then streams end.
	// nil: they call Draining with every heartbeat.
	Drained func() <-chan struct{}
}

func (o *Options) setDefaults() {
	if o.LogLevel == nil {
		o.LogLevel = new(slog.LevelVar)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = job.DefaultMaxBodyBytes
	}
	if o.MaxBufferedBytes == 0 {
		o.MaxBufferedBytes = 256 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.OperatorTimeout == 0 {
		o.OperatorTimeout = 2 * time.Minute
	}
	if o.Drained == nil {
		o.Drained = func() <-chan struct{} { return nil }
	}
	if o.Access == nil {
		o.Access = access.Everything()
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
}

// server handles the calls. Its methods are in the files of their groups.
type server struct {
	Options
	reads    job.Reads
	openapi  func() []byte // computed once, at the first request
	buffered *addrlimit.Limit
	decoding *semaphore.Weighted
	streams  streamRoom
	refills  *refills
	metrics  *httpx.Metrics
	// crossOrigins must not let a page of another origin write to a node on localhost.
	crossOrigins *http.CrossOriginProtection
}

// New returns the handler of a node's HTTP API. It may be served on several addresses at
// once.
func New(o Options) http.Handler { return newServer(o).root() }

func newServer(o Options) *server {
	o.setDefaults()
	queue := Checked(o.Queue, o.Access)
	o.Queue = queue
	s := &server{
		Options:      o,
		reads:        job.Reads{Reader: queue},
		openapi:      sync.OnceValue(openapi.JSON),
		buffered:     addrlimit.New(o.MaxBufferedBytes, o.MaxBufferedBytes/2),
		decoding:     newDecodeSlots(),
		streams:      newStreamRoom(),
		refills:      newRefills(),
		metrics:      httpx.NewMetrics(o.Registry),
		crossOrigins: httpx.NewCrossOrigins(o.Origins),
	}
	s.streams.publish(o.Registry)
	return s
}

// root returns the handler of all requests.
func (s *server) root() http.Handler {
	// Ids may have any character, so paths are matched without unescaping: an escaped slash
	// stays in its segment, and ".." is an id like any other.
	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	for _, rt := range s.routes() {
		router.Handle(rt.path, s.handler(rt))
	}
	if s.Metrics != nil {
		router.Handle("/metrics", s.observing(httpx.Writing(s.Metrics, s.Timeout)))
	}
	if s.UI != nil {
		router.Handle("/ui", http.RedirectHandler(uiRoot, http.StatusMovedPermanently))
		router.PathPrefix(uiRoot).Handler(s.dashboard(s.UI(router)))
	}
	router.NotFoundHandler = s.refusing(s.noSuchPath)

	h := s.allowOrigins(s.guard(router))
	if s.UI != nil {
		h = frontPage(h)
	}
	full := s.refusing(func(*call) error {
		return job.Errorf(job.CodeOverloaded, "this node has as many connections as it may")
	})
	ambiguous := s.refusing(func(*call) error {
		return job.Errorf(httpx.CodeBadHTTP, "the request has both Transfer-Encoding and Content-Length, so its end is not certain; send one of them")
	})
	return httpx.Bounded(full, ambiguous, httpx.CheckHost(s.Hosts, s.refusing(s.wrongHost), h))
}

// refusing responds to every request with the error of f.
func (s *server) refusing(f handlerFunc) http.Handler {
	return s.handler(route{path: "none", refuse: f})
}

// handlerFunc handles one kind of call: it writes x's response or returns the error to
// respond with.
type handlerFunc func(x *call) error

type methods map[string]endpoint

// handler runs the calls of one path: it selects the method, counts, and converts errors and
// panics to responses.
func (s *server) handler(rt route) http.Handler {
	rt.shown = wire.PathOf(rt.path)
	counts := s.metrics.Path(rt.shown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		x := newCall(s, w, r)
		defer func() {
			counts.Observe(r.Method, x.status, time.Since(started))
			x.close()
		}()
		if s.Draining() {
			w.Header().Set("Connection", "close")
		}
		err := s.run(rt, x)
		s.Access.End(x.who)
		x.record(err)
		if x.sent {
			return
		}
		if err != nil {
			x.fail(err)
		}
		if rt.methods[r.Method].manages || x.ofDashboard() && !x.reads() {
			x.logManagement()
		}
		if x.in == nil {
			httpx.Drain(w, r)
		}
		_ = x.send() // fails if the client is gone
	})
}

// run calls the method's handler. It converts a panic to an error, so that a defect fails
// only one request.
func (s *server) run(rt route, x *call) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		s.Logger.Error("request handler panicked", "method", x.r.Method, "path", x.r.URL.Path,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		err = job.Errorf(job.CodeInternal, "a defect of the server interrupted the request; its outcome is unknown")
	}()
	if rt.refuse != nil {
		return rt.refuse(x)
	}
	if x.isPreflight() {
		x.preflight(rt)
		return nil
	}
	h, ok := rt.methods[x.r.Method]
	if !ok && x.r.Method == http.MethodHead {
		h, ok = rt.methods[http.MethodGet]
	}
	if !ok {
		return s.wrongMethod(rt, x)
	}
	if err := s.admit(rt, h, x); err != nil {
		return err
	}
	if err := wire.CheckQuery(x.r, h.query); err != nil {
		return err
	}
	if !h.body {
		if err := x.refuseBody(h.query); err != nil {
			return err
		}
	}
	return h.handle(x)
}

func (s *server) wrongMethod(rt route, x *call) error {
	allowed := rt.allow()
	x.w.Header().Set("Allow", allowed)
	return job.Errorf(codeMethod, "%.300s does not take %s; it takes %s", x.r.URL.EscapedPath(), x.r.Method, strings.ReplaceAll(allowed, ", ", " or "))
}

// openAPI handles GET /v1/openapi.json.
func (s *server) openAPI(x *call) error {
	description := s.openapi()
	if err := x.claim(int64(len(description))); err != nil {
		return err
	}
	x.json.b = append(x.json.b, description...)
	return nil
}

func (s *server) wrongHost(x *call) error {
	return job.Errorf(codeWrongHost, "Host is %.100q, which is not a name of this node; use its IP address, or list the name in --http-hosts", x.r.Host).In("Host")
}

func (s *server) noSuchPath(x *call) error {
	return job.Errorf(job.CodeNotFound, "there is nothing at %.300q; see docs/http-api.md for the paths", x.r.URL.Path)
}
