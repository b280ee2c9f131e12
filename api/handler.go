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

	"tarry/internal/addrlimit"
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

	// CheckPush returns an error, for the client, if this node may not post to the URL
	// target. nil: push is off.
	CheckPush func(target string) error

	// Metrics serves /metrics; nil: that path is not found.
	Metrics http.Handler
	// Registry gets the handler's own metrics; nil: they are not published.
	Registry prometheus.Registerer

	// Draining reports whether the node drains before it stops. Then it is not ready, and
	// connections are closed after their response. A reserve that fails with not_applied
	// during that time gets a response without jobs. It must not block. nil: never.
	Draining func() bool
	// Drained is closed once Draining reports true; then streams end. nil: they call
	// Draining with every heartbeat.
	Drained <-chan struct{}
}

func (o *Options) setDefaults() {
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
	metrics  *metrics
}

// New returns the handler of a node's HTTP API. It may be served on several addresses at
// once.
func New(o Options) http.Handler {
	o.setDefaults()
	s := &server{Options: o, reads: job.Reads{Reader: o.Queue}, openapi: sync.OnceValue(OpenAPI), buffered: addrlimit.New(o.MaxBufferedBytes, o.MaxBufferedBytes/2), decoding: newDecodeSlots(), streams: newStreamRoom(), metrics: newMetrics(o.Registry)}
	s.streams.publish(o.Registry)

	// Ids may have any character, so paths are matched without unescaping: an escaped slash
	// stays in its segment, and ".." is an id like any other.
	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	for _, rt := range s.routes() {
		router.Handle(rt.path, s.handler(rt))
	}
	if o.Metrics != nil {
		router.Handle("/metrics", s.writing(o.Metrics))
	}
	router.NotFoundHandler = s.refusing(s.noSuchPath)

	// A web page must not make a browser write to a node on localhost.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(s.refusing(s.crossOrigin))
	return s.checkHost(guard.Handler(router))
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
	counts := s.metrics.path(rt.path)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		x := newCall(s, w, r)
		defer func() {
			counts.observe(x.status, time.Since(started))
			x.close()
		}()
		if s.Draining() {
			w.Header().Set("Connection", "close")
		}
		err := s.run(rt, x)
		if x.sent {
			return
		}
		if err != nil {
			x.fail(err)
		}
		if rt.methods[r.Method].manages {
			x.logManagement()
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
	h, ok := rt.methods[x.r.Method]
	if !ok && x.r.Method == http.MethodHead {
		h, ok = rt.methods[http.MethodGet]
	}
	if !ok {
		return s.wrongMethod(rt, x)
	}
	if err := checkQuery(x.r, h.query); err != nil {
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

func (s *server) noSuchPath(x *call) error {
	return job.Errorf(job.CodeNotFound, "there is nothing at %.300q; see docs/http-api.md for the paths", x.r.URL.Path)
}

func (s *server) crossOrigin(x *call) error {
	return job.Errorf(codeCrossOrigin, "a browser sent this from a page of another origin, or does not say from where; such requests may not change anything")
}
