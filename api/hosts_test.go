package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostNames(t *testing.T) {
	names := hostNames{"n1", "Queue.Example", "*.svc.local"}
	for host, allowed := range map[string]bool{
		"": true, "localhost": true, "LOCALHOST:7300": true, "localhost.": true, "127.0.0.1": true, "127.0.0.1:7300": true,
		"[::1]": true, "[::1]:7300": true, "[fe80::1]:7300": true, "192.0.2.7:80": true,
		"n1": true, "N1:7300": true, "n1.": true, "queue.example:1": true, "a.svc.local": true, "a.b.SVC.local:7300": true,

		"n2": false, "n1.example": false, "xn1": false, "svc.local": false, "xsvc.local": false, "evil.example:7300": false,
		"127.0.0.1.evil.example": false, "[fe80::1%evil]": false, "[fe80::1%evil.example]:7300": false, "localhost.evil.example": false, "notlocalhost": false, "::": true, "[": false, "a:b:c": false,
	} {
		require.Equal(t, allowed, names.allow(host), host)
	}
	require.True(t, hostNames{"*"}.allow("any.example"))
}

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
	h := ForHosts([]string{"n1"}, http.NotFoundHandler())
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
