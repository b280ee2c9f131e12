package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/httpx"
)

// allowing makes a rig that allows origins.
func allowing(t *testing.T, origins string) *rig {
	o, err := httpx.ParseOrigins(origins)
	require.NoError(t, err)
	return newRig(t, func(options *Options) { options.Origins = o })
}

// fromPage sends a request as a browser does for a page of an origin.
func (r *rig) fromPage(origin, method, path, body string, header ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	q.Header.Set("Origin", origin)
	q.Header.Set("Sec-Fetch-Site", "cross-site")
	q.Header.Set("User-Agent", "Mozilla/5.0")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w
}

func (r *rig) preflight(origin, path, method string) *httptest.ResponseRecorder {
	return r.fromPage(origin, "OPTIONS", path, "", "Access-Control-Request-Method", method, "Access-Control-Request-Headers", "content-type")
}

const (
	app = "https://app.example"
	add = `{"topic":"t","body":1}`
)

func noCORS(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	for name := range w.Header() {
		require.False(t, strings.HasPrefix(name, "Access-Control"), name)
	}
}

func TestNoPageMayCallUnlessOriginsAreAllowed(t *testing.T) {
	r := newRig(t)
	w := r.fromPage(app, "POST", "/v1/jobs", add)
	refused(t, w, 403, codeCrossOrigin, "--cors-origins")
	noCORS(t, w)
	require.Empty(t, r.queue.Ops())
	w = r.fromPage(app, "GET", "/v1/stats", "")
	require.Equal(t, 200, w.Code)
	noCORS(t, w)
	require.NotContains(t, w.Header(), "Vary")
	w = r.preflight(app, "/v1/jobs", "POST")
	refused(t, w, 405, codeMethod, "OPTIONS")
	noCORS(t, w)
}

func TestPagesOfAnAllowedOriginMayCall(t *testing.T) {
	r := allowing(t, "http://localhost:5173, https://App.Example")
	r.operator.Leader = "n1:7300"
	for _, origin := range []string{app, "http://localhost:5173"} {
		w := r.preflight(origin, "/v1/jobs/a", "PATCH")
		require.Equal(t, 204, w.Code)
		require.Empty(t, w.Body.String())
		require.Equal(t, origin, w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, "DELETE, GET, PATCH", w.Header().Get("Access-Control-Allow-Methods"))
		require.Equal(t, "Authorization, Content-Type, Idempotency-Key, traceparent, tracestate", w.Header().Get("Access-Control-Allow-Headers"))
		require.Equal(t, "600", w.Header().Get("Access-Control-Max-Age"))

		w = r.fromPage(origin, "POST", "/v1/jobs", add, "Idempotency-Key", origin)
		require.Equal(t, 201, w.Code, w.Body)
		require.Equal(t, origin, w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, "Allow, Retry-After, Tarry-Leader", w.Header().Get("Access-Control-Expose-Headers"))
		require.Equal(t, []string{"Origin"}, w.Header().Values("Vary"))
		require.NotContains(t, w.Header(), "Access-Control-Allow-Credentials")

		// It can read failures, too.
		w = r.fromPage(origin, "GET", "/v1/jobs/nobody", "")
		require.Equal(t, 404, w.Code)
		require.Equal(t, origin, w.Header().Get("Access-Control-Allow-Origin"))
	}
}

func TestPagesOfOtherOriginsMayNotCall(t *testing.T) {
	r := allowing(t, app)
	for _, origin := range []string{
		"https://evil.example", "http://app.example", "https://app.example:8443", "https://x.app.example", "https://app.example.evil.example", "null", "https://APP.example",
	} {
		w := r.fromPage(origin, "POST", "/v1/jobs", add)
		refused(t, w, 403, codeCrossOrigin, "another origin")
		noCORS(t, w)
		refused(t, r.fromPage(origin, "GET", "/v1/stream?topics=t", ""), 403, codeCrossOrigin, "another origin")
		w = r.fromPage(origin, "GET", "/v1/stats", "")
		require.Equal(t, 200, w.Code, "the browser does not show it to the page")
		noCORS(t, w)
		require.Equal(t, "Origin", w.Header().Get("Vary"), "caches must not give the reply to another page")
		w = r.preflight(origin, "/v1/jobs", "POST")
		require.Equal(t, 405, w.Code)
		noCORS(t, w)
	}
	require.Empty(t, r.queue.Ops())
	// A request without an origin that a browser calls cross-site is no page's that is allowed.
	q := httptest.NewRequest("POST", "/v1/jobs", strings.NewReader(add))
	q.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	refused(t, w, 403, codeCrossOrigin, "another origin")
}

func TestAPreflightNamesTheMethodsOfThePathAlone(t *testing.T) {
	r := allowing(t, app)
	w := r.preflight(app, "/v1/jobs/a", "BREW")
	require.Equal(t, 204, w.Code)
	require.Equal(t, "DELETE, GET, PATCH", w.Header().Get("Access-Control-Allow-Methods"))
	refused(t, r.preflight(app, "/nope", "GET"), 404, "not_found", "nothing")
	// Without the question of a preflight it is a method like any other.
	refused(t, r.fromPage(app, "OPTIONS", "/v1/jobs", ""), 405, codeMethod, "OPTIONS")
	for path, methods := range map[string]string{"/v1/topics/t/settings": "DELETE, GET, PATCH, PUT", "/v1/get": "POST", "/livez": "GET"} {
		require.Equal(t, methods, r.preflight(app, path, "GET").Header().Get("Access-Control-Allow-Methods"))
	}
	require.Empty(t, r.queue.Ops())
}

func TestAnAllowedPageStreams(t *testing.T) {
	for _, origins := range []string{app, "*"} {
		o, err := httpx.ParseOrigins(origins)
		require.NoError(t, err)
		// A stream that opens is sent away.
		r := newRig(t, func(options *Options) { options.Origins, options.Draining = o, func() bool { return true } })
		refused(t, r.fromPage(app, "GET", "/v1/stream?topics=t", ""), 503, "not_applied", "stopping")
	}
}

func TestAnyOriginMayBeAllowed(t *testing.T) {
	r := allowing(t, "*")
	for _, origin := range []string{app, "null", "http://anything.example"} {
		w := r.fromPage(origin, "POST", "/v1/jobs", add)
		require.Equal(t, 201, w.Code, w.Body)
		require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, 204, r.preflight(origin, "/v1/jobs", "POST").Code)
	}
}

func TestTheDashboardIsForItsOwnPagesAlone(t *testing.T) {
	o, err := httpx.ParseOrigins("*")
	require.NoError(t, err)
	r := newRig(t, func(options *Options) {
		options.Origins = o
		options.UI = func(http.Handler) http.Handler { return http.NotFoundHandler() }
	})
	w := r.fromPage(app, "POST", "/ui/topics", "")
	refused(t, w, 403, codeCrossOrigin, "another origin")
	noCORS(t, w)
	noCORS(t, r.fromPage(app, "GET", "/ui/topics", ""))
}

// An allowed origin does not let a name through that resolves to this node.
func TestHostsAreCheckedBeforeOrigins(t *testing.T) {
	r := allowing(t, "*")
	for _, method := range []string{"POST", "OPTIONS"} {
		q := httptest.NewRequest(method, "/v1/jobs", strings.NewReader(add))
		q.Host = "rebound.example"
		q.Header.Set("Origin", "http://rebound.example")
		q.Header.Set("Access-Control-Request-Method", "POST")
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		require.Equal(t, http.StatusMisdirectedRequest, w.Code)
		noCORS(t, w)
	}
	require.Empty(t, r.queue.Ops())
}

func TestOriginsAreChecked(t *testing.T) {
	for text, says := range map[string]string{
		"app.example": "not an origin", "https://app.example/": "without a path", "https://app.example/x": "without a path",
		"https://*.app.example": "wildcard", "null": "sandboxed", "https://app.example:443": "leave it out", "http://a.example:80": "leave it out",
		"https://user@app.example": "not an origin", "https://ünï.example": "ASCII", "https://a.example,*": "either", "https://": "not an origin", "https://a b": "not an origin",
	} {
		_, err := httpx.ParseOrigins(text)
		require.ErrorContains(t, err, says, text)
	}
	for _, text := range []string{"", " ", "https://app.example", "HTTP://[::1]:8080", "*", "app://tarry", "chrome-extension://abc"} {
		o, err := httpx.ParseOrigins(text)
		require.NoError(t, err, text)
		httpx.NewCrossOrigins(o)
		require.Equal(t, strings.TrimSpace(text) == "", o.None())
	}
}
