package localcluster

import (
	"net/http"
	"sync/atomic"
)

// token is what the calls of this process carry; nil: nothing. A process has one cluster at a
// time.
var token atomic.Pointer[string]

// UseToken makes the calls of Authorized transports, and those of this package, carry a
// client's token from now on; empty: none.
func UseToken(text string) {
	token.Store(&text)
}

// Token returns what UseToken was given.
func Token() string {
	if text := token.Load(); text != nil {
		return *text
	}
	return ""
}

// Authorized returns base with the token in each request that has none of its own.
func Authorized(base http.RoundTripper) http.RoundTripper { return authorized{base} }

type authorized struct{ base http.RoundTripper }

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if text := Token(); text != "" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+text)
	}
	return a.base.RoundTrip(r)
}

// CloseIdleConnections implements what http.Client asks of a transport.
func (a authorized) CloseIdleConnections() {
	if base, ok := a.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}
