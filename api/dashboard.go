package api

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// uiRoot is the path below which the dashboard is.
const uiRoot = "/ui/"

// ofUI reports whether a request is for the dashboard.
func ofUI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, uiRoot) }

// dashboard counts the requests to the dashboard, as one path.
func (s *server) dashboard(pages http.Handler) http.Handler {
	counts := s.metrics.Path(uiRoot)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started, status := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		if s.Draining() {
			w.Header().Set("Connection", "close")
		}
		if r.Method == http.MethodPost {
			r = r.WithContext(context.WithValue(r.Context(), dashboardAction{}, true))
		}
		pages.ServeHTTP(status, r)
		counts.Observe(r.Method, status.status, time.Since(started))
	})
}

// frontPage sends a person who opens the node's address in a browser to the dashboard.
func frontPage(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Redirect(w, r, uiRoot, http.StatusFound)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// dashboardAction marks the context of a person's action in the dashboard, and so of the calls
// that it makes to the API.
type dashboardAction struct{}

// ofDashboard reports whether the call is part of an action in the dashboard. Such calls are
// logged.
func (x *call) ofDashboard() bool { return x.r.Context().Value(dashboardAction{}) != nil }
