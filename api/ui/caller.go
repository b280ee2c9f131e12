package ui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// readLimit bounds a read that asks the leader, before the node's own state is shown. The API
// bounds actions.
const readLimit = 2 * time.Second

// caller makes calls to the API of this node, on behalf of the client of a request.
type caller struct {
	api   http.Handler
	of    *http.Request
	token string // of the session; empty: there is none
}

// failure is an error of the API.
type failure struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"error"`
	Field   string `json:"field"`
	Outcome string `json:"outcome"`
	// Partly is set if some of what was asked for was done before the error.
	Partly bool `json:"-"`
}

func (f *failure) Error() string { return f.Message }

// Unknown reports whether the action may have been done.
func (f *failure) Unknown() bool { return f.Outcome == "unknown" || f.Code == "internal" }

// after returns the failure of an action of several calls, of which some were done.
func (f *failure) after(done string) *failure {
	f.Message, f.Partly = done+"; then: "+f.Message, true
	return f
}

// response is a response of the API in memory. The API bounds its size.
type response struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.head }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }

// call makes a call and decodes a successful response into out.
func (c caller) call(ctx context.Context, method, path string, in, out any) *failure {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return defect(err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return defect(err)
	}
	c.as(r)
	answer := &response{head: http.Header{}, status: http.StatusOK}
	c.api.ServeHTTP(answer, r)
	if answer.status >= 300 {
		f := &failure{Status: answer.status}
		if err := json.Unmarshal(answer.body.Bytes(), f); err != nil {
			return defect(err)
		}
		return f
	}
	if err := json.Unmarshal(answer.body.Bytes(), out); err != nil {
		return defect(err)
	}
	return nil
}

// as makes r a request of the client of the page.
func (c caller) as(r *http.Request) {
	r.RemoteAddr = c.of.RemoteAddr
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	} else if given := c.of.Header["Authorization"]; given != nil {
		r.Header["Authorization"] = given
	} else {
		r.TLS = c.of.TLS // its certificate may name a token
	}
}

func defect(err error) *failure {
	return &failure{Status: http.StatusInternalServerError, Code: "internal", Message: "the dashboard does not understand the API: " + err.Error()}
}

func (c caller) get(ctx context.Context, path string, out any) *failure {
	return c.call(ctx, http.MethodGet, path, nil, out)
}

// read reads a path of the API with a query. While there is no leader, or if it does not
// answer in time, it reads the state of this node, and the page says so.
func (q *request) read(path string, query url.Values, out any) error {
	if !q.stale {
		ctx, cancel := context.WithTimeout(q.r.Context(), readLimit)
		defer cancel()
		f := q.api.get(ctx, path+querySuffix(query), out)
		if f == nil {
			return nil
		}
		if f.Outcome == "" {
			return f
		}
		q.stale = true
	}
	own := url.Values{"consistency": {"stale"}}
	for name, values := range query {
		own[name] = values
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), readLimit)
	defer cancel()
	if f := q.api.get(ctx, path+querySuffix(own), out); f != nil {
		return f
	}
	return nil
}

// do posts to a path of the API.
func (q *request) do(path string, in, out any) error {
	return q.send(http.MethodPost, path, in, out)
}

// send makes a call that changes something. out may be nil.
func (q *request) send(method, path string, in, out any) error {
	if out == nil {
		out = &struct{}{}
	}
	if f := q.api.call(q.r.Context(), method, path, in, out); f != nil {
		return f
	}
	return nil
}

// readiness is the state of this node.
type readiness struct {
	at       time.Time
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
	Leader   string   `json:"leader"`
}

// readiness asks this node only, and does not block.
func (c caller) readiness() readiness {
	r, err := http.NewRequestWithContext(c.of.Context(), http.MethodGet, "http://localhost/readyz", http.NoBody)
	a := readiness{at: time.Now()}
	if err != nil {
		return a
	}
	c.as(r)
	answer := &response{head: http.Header{}, status: http.StatusOK}
	c.api.ServeHTTP(answer, r)
	if err := json.Unmarshal(answer.body.Bytes(), &a); err != nil {
		a.Reasons = []string{"the node does not say whether it is ready"}
	}
	return a
}

// segment escapes a name as one segment of a path of the API.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// isNotFound reports whether err is that what was asked for does not exist.
func isNotFound(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.Code == "not_found"
}

// isInvalid reports whether err is that the call itself is wrong.
func isInvalid(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.Code == "invalid_argument"
}

// invalid returns a failure of a field of a form, before the API sees it.
func invalid(field, message string) *failure {
	return &failure{Status: http.StatusBadRequest, Code: "invalid_argument", Field: field, Message: message}
}
