package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/httpx"
)

// For a browser, a page whose name resolves to this node (DNS rebinding) is of its origin.
func TestAForeignNameIsMisdirected(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Hosts = []string{"n1"} })
	for _, call := range []string{"POST /v1/jobs", "GET /v1/stats", "GET /livez", "GET /nope", "GET /v1/stream?topics=t"} {
		method, path, _ := strings.Cut(call, " ")
		q := httptest.NewRequest(method, path, strings.NewReader(`{"topic":"t","body":""}`))
		q.Host = "rebound.example:7300"
		q.Header.Set("Origin", "http://rebound.example:7300")
		q.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		refused(t, w, 421, codeWrongHost, `"rebound.example:7300", which is not a name of this node; use its IP address, or list the name in --http-hosts`)
	}
	require.Empty(t, r.queue.Ops())
}

func TestHandlersForHosts(t *testing.T) {
	h := httpx.ForHosts([]string{"n1"}, http.NotFoundHandler())
	for _, q := range []struct {
		host, site string
		status     int
	}{
		{"127.0.0.1:6060", "", 404}, {"localhost:6060", "none", 404}, {"n1:6060", "", 404}, {"[::1]:6060", "same-origin", 404},
		{"rebound.example:6060", "", 421}, {"rebound.example:6060", "same-origin", 421},
		{"127.0.0.1:6060", "cross-site", 421}, {"127.0.0.1:6060", "same-site", 421},
	} {
		r, w := httptest.NewRequest("GET", "/debug/pprof/profile", nil), httptest.NewRecorder()
		r.Host = q.host
		r.Header.Set("Sec-Fetch-Site", q.site)
		h.ServeHTTP(w, r)
		require.Equal(t, q.status, w.Code, "%+v", q)
	}
}
