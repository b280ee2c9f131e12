package api

import (
	"bytes"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

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
