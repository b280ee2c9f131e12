package api

import (
	"bytes"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// logManagement leaves a line about a call that manages topics, schedules or the
// cluster: who asked for what, and which fields the request set. Their values may be
// secrets. Refusals cost a client nothing, so they are warnings: those that repeat
// share a line (see cmd/tarry/repeats.go).
func (x *exchange) logManagement() {
	about := []any{"call", x.r.Method + " " + x.r.URL.EscapedPath(), "from", x.r.RemoteAddr, "status", x.status}
	if names := memberNames(x.decoded); len(names) > 0 {
		about = append(about, "fields", names)
	}
	if x.status >= http.StatusBadRequest {
		x.s.Logger.Warn("management call failed", about...)
		return
	}
	x.s.Logger.Info("management call", about...)
}

// memberNames lists the names of the members of a JSON object, in its order, but not
// of those inside them.
func memberNames(object []byte) (names []string) {
	// Duplicates were looked for when it was decoded; it takes memory for each name.
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
