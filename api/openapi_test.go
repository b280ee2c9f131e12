package api

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"tarry/api/openapi"
	"tarry/api/wire"
)

const openAPIPath = "../docs/openapi.yaml"

func TestEveryCallHasAHandler(t *testing.T) {
	handlers := maps.Clone(handlers)
	for _, c := range wire.Calls {
		require.NotNil(t, handlers[c.Name], c.Name)
		delete(handlers, c.Name)
	}
	require.Empty(t, handlers, "each has a row")
}

// sends returns the content of a request that is not JSON.
func sends(method, path string) string {
	for _, c := range wire.Calls {
		if c.Method() == method && c.Path() == path {
			return c.Sends
		}
	}
	return ""
}

// docs/openapi.yaml is what the server gives; -update writes it.
func TestTheOpenAPIPageIsUpToDate(t *testing.T) {
	var description any
	require.NoError(t, yaml.Unmarshal(openapi.JSON(), &description))
	var b bytes.Buffer
	b.WriteString("# What GET /v1/openapi.json gives. Made from the tables of package api: go test ./api -run OpenAPI -update\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	require.NoError(t, e.Encode(description))
	if *update {
		require.NoError(t, os.WriteFile(openAPIPath, b.Bytes(), 0o644))
	}
	page, err := os.ReadFile(openAPIPath)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "go test ./api -run OpenAPI -update")
}

// The clients have the same types; -update writes them.
func TestTheTypesOfClientsAreThoseOfOpenAPI(t *testing.T) {
	for path, made := range map[string][]byte{
		"../clients/node/replies.d.ts":            openapi.TypeScript(),
		"../clients/python/src/tarry/_replies.py": openapi.Python(),
	} {
		if *update {
			require.NoError(t, os.WriteFile(path, made, 0o644))
		}
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(made), string(file), "go test ./api -run OpenAPI -update")
	}
}

func TestTheDescriptionIsServed(t *testing.T) {
	w := newRig(t).do(http.MethodGet, "/v1/openapi.json", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	require.Equal(t, "3.1.0", doc.OpenAPI)
}

// unbounded are the fields of requests without an upper limit, and why.
var unbounded = map[string]string{
	"max_pending":                 "a topic may have any number of jobs",
	"max_reserved":                "and consumers",
	"cursor":                      "text of the server's own",
	"after":                       "a name, of whatever it is a list",
	"StreamRequest.max":           "a stream may have no end",
	"get /v1/stream?.max":         "a stream may have no end",
	"post /v1/stream?.max":        "a stream may have no end",
	"ScheduleRequest.if_revision": "revisions of schedules grow for ever",
	"if_revision":                 "so do those of tokens and namespaces",
	"from":                        "events are counted for ever",
	"token":                       "text of the server's own",
	"command":                     "one of four words, in any case",
	"body":                        "limited by --max-body-bytes",
	"secret":                      "BootstrapRequest.secret is compared with the server's",
	"addresses":                   "host:port",
	"id":                          "TransferRequest.id is the name of a node",
}

// What a client may send has its limits in the description: numbers a range, texts a length,
// lists a number of items.
func TestEveryFieldOfARequestHasItsRange(t *testing.T) {
	var d apiDoc
	require.NoError(t, json.Unmarshal(openapi.JSON(), &d, json.MatchCaseInsensitiveNames(true)))
	seen := make(map[string]bool)
	for path, methods := range d.Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				if p.In == "query" {
					d.hasRange(t, method+" "+path+"?", p.Name, p.Schema, seen)
				}
			}
			if op.RequestBody == nil {
				continue
			}
			if schema := op.RequestBody.Content["application/json"].Schema; schema != nil {
				d.hasRange(t, "", "", schema, seen)
			}
		}
	}
	require.Greater(t, len(seen), 30)
}

// hasRange checks the field of a schema, or with no field name the schema itself.
func (d *apiDoc) hasRange(t *testing.T, in, field string, s *schemaDoc, seen map[string]bool) {
	if name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]; name != "" {
		if !seen[name] {
			seen[name] = true
			d.hasRange(t, name, field, d.Components.Schemas[name], seen)
		}
		return
	}
	for name, of := range s.Properties {
		d.hasRange(t, in, name, of, seen)
	}
	for _, of := range s.OneOf {
		d.hasRange(t, in, field, of, seen)
	}
	if s.Items != nil {
		d.hasRange(t, in, field, s.Items, seen)
	}
	if unbounded[field] != "" || unbounded[in+"."+field] != "" || len(s.Enum) > 0 || s.Format == "date-time" {
		return
	}
	switch {
	case isOf(s, "integer"), isOf(s, "number"):
		require.True(t, s.Minimum != nil && s.Maximum != nil, "%s.%s is a number without a range", in, field)
	case isOf(s, "string") && in != "" && !strings.HasSuffix(in, "?"):
		require.Positive(t, s.MaxLength, "%s.%s is a text without a length", in, field)
	case isOf(s, "array"):
		require.Positive(t, s.MaxItems, "%s.%s is a list without a limit", in, field)
	}
}

// isOf reports whether a schema is of the type, or null.
func isOf(s *schemaDoc, kind string) bool {
	kinds, several := s.Type.([]any)
	return s.Type == kind || several && len(kinds) == 2 && kinds[0] == kind
}

// described finds the description of a request. Its replies may have no fields but those
// that are described.
var described = sync.OnceValue(func() routers.Router {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.JSON())
	if err != nil {
		panic(err)
	}
	for name, s := range doc.Components.Schemas {
		if name != "Description" && s.Value.Type.Is("object") && s.Value.AdditionalProperties.Schema == nil {
			s.Value.AdditionalProperties.Has = new(false)
		}
	}
	doc.Servers = nil
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return router
})

// held serves a request with h and checks it, if it was granted, and the reply against the
// description.
func held(t testing.TB, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	again := httptest.NewRequestWithContext(context.Background(), r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	again.Header = r.Header.Clone()
	holds(t, again, body, w)
	return w
}

// nullIn finds null members, which count as not given: the description does not repeat that
// for each. Nor does it tell what else the lenient POST / takes.
var nullIn = regexp.MustCompile(`:\s*null`)

func holds(t testing.TB, r *http.Request, body []byte, w *httptest.ResponseRecorder) {
	t.Helper()
	route, params, err := described().FindRoute(r)
	if err != nil || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		return // there is no such call, or it gives a stream
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", cmp.Or(sends(r.Method, route.Path), "application/json"))
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{}}
	granted := bytes.HasPrefix(w.Body.Bytes(), []byte(`{"success":true`)) && !nullIn.Match(body) && r.URL.Path != "/"
	if granted {
		err := openapi3filter.ValidateRequest(t.Context(), in)
		require.NoError(t, err, "%s %s %s", r.Method, r.URL, body)
	}
	if r.Method == http.MethodHead {
		return
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: w.Code, Header: w.Header(), Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	out.SetBodyBytes(w.Body.Bytes())
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), out), "%s %s %s: %d %s", r.Method, r.URL, body, w.Code, w.Body)
}
