package api

import (
	"net/http"
	"strings"

	"tarry/api/httpx"
	"tarry/job"
)

// What pages may send and read besides what browsers always allow. Credentials are not
// allowed: a page sends its own token, if any.
const (
	corsRequestHeaders  = "Authorization, Content-Type, " + keyHeader + ", " + job.HeaderTraceParent + ", " + job.HeaderTraceState
	corsResponseHeaders = "Allow, Retry-After, " + headerLeader
	corsMaxAge          = "600" // seconds for which a browser need not ask again
)

// allowOrigins lets the pages of allowed origins read the replies. The dashboard is for its
// own pages alone.
func (s *server) allowOrigins(h http.Handler) http.Handler {
	if s.Origins.None() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ofUI(r) {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Origin")
		if allowed := s.Origins.Allow(r.Header.Get("Origin")); allowed != "" {
			w.Header().Set("Access-Control-Allow-Origin", allowed)
			w.Header().Set("Access-Control-Expose-Headers", corsResponseHeaders)
		}
		h.ServeHTTP(w, r)
	})
}

// guard rejects requests that change something and that a browser sent for a page of an
// origin that is neither the node's own nor allowed.
func (s *server) guard(h http.Handler) http.Handler {
	denied := s.refusing(s.crossOrigin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			denied.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// foreign reports whether a request that is no read is one of a page that may not send it.
func (s *server) foreign(r *http.Request) bool {
	if ofUI(r) {
		return httpx.SameOrigin.Check(r) != nil
	}
	return !s.Origins.Any() && s.crossOrigins.Check(r) != nil
}

// foreignGet is foreign for a GET that does more than to read. Browsers send the origin of a
// GET only to this machine and over TLS, and an image needs none. So a GET of a browser without
// an origin is foreign.
func (x *call) foreignGet() bool {
	asWrite := x.r.WithContext(x.r.Context())
	asWrite.Method = http.MethodPost
	from := x.r.Header
	silent := from.Get("Sec-Fetch-Site") == "" && from.Get("Origin") == "" && strings.HasPrefix(from.Get("User-Agent"), "Mozilla/")
	return silent && !x.s.Origins.Any() || x.s.foreign(asWrite)
}

// isPreflight reports whether a browser asks whether a page of an allowed origin may make a
// call.
func (x *call) isPreflight() bool {
	return x.r.Method == http.MethodOptions && x.r.Header.Get("Access-Control-Request-Method") != "" &&
		x.s.Origins.Allow(x.r.Header.Get("Origin")) != ""
}

// preflight responds with what a page may send to a path. A browser then rejects any other
// method by itself.
func (x *call) preflight(rt route) {
	h := x.w.Header()
	h.Set("Access-Control-Allow-Methods", rt.allow())
	h.Set("Access-Control-Allow-Headers", corsRequestHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	h.Del("Access-Control-Expose-Headers")
	x.nameLeader()
	x.status, x.sent = http.StatusNoContent, true
	x.w.WriteHeader(x.status)
}

func (s *server) crossOrigin(*call) error {
	return job.Errorf(codeCrossOrigin, "a browser sent this from a page of another origin, or does not say from where; such requests may neither change anything nor make a backup, unless --cors-origins lists the origin")
}
