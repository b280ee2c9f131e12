package api

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/api/apitest"
	"tarry/job"
)

// net/http keeps a refused connection open for half a second, so that its client can read
// the response.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// rig is a handler on a queue in memory.
type rig struct {
	t        *testing.T
	queue    *apitest.Queue
	operator *apitest.Operator
	handler  http.Handler
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	r := &rig{t: t, queue: apitest.New(t), operator: &apitest.Operator{}}
	o := Options{Queue: r.queue, Operator: r.operator, Hosts: []string{"example.com"}} // as httptest says
	for _, f := range change {
		f(&o)
	}
	r.handler = New(o)
	return r
}

func (r *rig) do(method, path, body string) *httptest.ResponseRecorder {
	return held(r.t, r.handler, httptest.NewRequest(method, path, strings.NewReader(body)))
}

func (r *rig) post(path, body string) *httptest.ResponseRecorder {
	return r.do(http.MethodPost, path, body)
}

// ok posts a request that must succeed and returns the response.
func (r *rig) ok(path, body string) map[string]any {
	r.t.Helper()
	w := r.post(path, body)
	require.Less(r.t, w.Code, 300, "%s %s: %s", path, body, w.Body)
	return decoded(r.t, w)
}

func decoded(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var a map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a), w.Body.String())
	return a
}

// refused checks that a response is a failure of the usual form.
func refused(t *testing.T, w *httptest.ResponseRecorder, status int, code job.Code, says string) {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	a := decoded(t, w)
	require.Equal(t, false, a["success"])
	require.Equal(t, string(code), a["code"], a["error"])
	require.Contains(t, a["error"], says)
	require.LessOrEqual(t, len(a["error"].(string)), maxMessage+3)
	if code == job.CodeInvalid || code == job.CodeBadJSON {
		namesField(t, a)
	}
}

// wholeRequest is the beginning of errors that are not about a single field.
var wholeRequest = regexp.MustCompile(`^(the request|the query string|a stream is asked for)`)

// namesField checks that a refusal names the invalid field, both as a field and in its text.
func namesField(t *testing.T, a map[string]any) {
	t.Helper()
	field, _ := a["field"].(string)
	said := a["error"].(string)
	if field == "" {
		require.Regexp(t, wholeRequest, said, "no field is named")
		return
	}
	last := field[strings.LastIndexByte(field, '.')+1:]
	require.Contains(t, said, last)
}

func TestPathsAndMethods(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, path string
		status       int
		code         job.Code
		says, allow  string
	}{
		{"GET", "/nope", 404, job.CodeNotFound, "/nope", ""},
		{"GET", "/v1/jobs/", 404, job.CodeNotFound, "/v1/jobs/", ""},
		{"POST", "/v1/jobs//finish", 404, job.CodeNotFound, "nothing", ""},
		{"GET", "/metrics", 404, job.CodeNotFound, "nothing", ""},
		{"GET", "/", 405, codeMethod, "POST", "POST"},
		{"PUT", "/v1/jobs/a", 405, codeMethod, "DELETE or GET or PATCH", "DELETE, GET, PATCH"},
		{"PUT", "/v1/jobs", 405, codeMethod, "DELETE or GET or PATCH or POST", "DELETE, GET, PATCH, POST"},
		{"OPTIONS", "/livez", 405, codeMethod, "GET", "GET"},
		{"GET", "/v1/topics?maximum=3", 400, job.CodeInvalid, `"maximum"`, ""},
		{"GET", "/v1/topics?max=3&max=4", 400, job.CodeInvalid, "max is given 2 times", ""},
		{"GET", "/v1/topics?max=x", 400, job.CodeInvalid, "max", ""},
		{"GET", "/v1/topics?max=1001", 400, job.CodeInvalid, "between 1 and 1000", ""},
		{"GET", "/v1/topics?after=%00", 400, job.CodeInvalid, "after", ""},
		{"GET", "/v1/topics?a=%zz", 400, job.CodeInvalid, "query", ""},
		{"GET", "/v1/topics/t?consistency=maybe", 400, job.CodeInvalid, "consistency", ""},
		{"GET", "/v1/topics/%ff", 400, job.CodeInvalid, "UTF-8", ""},
		{"GET", "/v1/jobs/" + strings.Repeat("a", 201), 400, job.CodeInvalid, "201 bytes", ""},
		{"DELETE", "/v1/jobs/a?token=x", 400, job.CodeInvalid, "token", ""},
		{"DELETE", "/v1/jobs/a?token=1-1-1", 409, job.CodeStaleToken, "shard 1", ""},
		{"POST", "/v1/jobs?topic=x", 400, job.CodeInvalid, "known: none", ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			w := r.do(c.method, c.path, "")
			refused(t, w, c.status, c.code, c.says)
			require.Equal(t, c.allow, w.Header().Get("Allow"))
		})
	}
	w := r.do("HEAD", "/livez", "")
	require.Equal(t, 200, w.Code)
}

func TestIDsMayHoldAnyCharacter(t *testing.T) {
	for _, id := range []string{"a/b", "..", ".", "a b", "a%2Fb", "ü", "a?b#c", "batch", "finish", "x/finish", "+", "//"} {
		t.Run(id, func(t *testing.T) {
			r := newRig(t)
			text, err := json.Marshal(id)
			require.NoError(t, err)
			r.ok("/v1/jobs", `{"topic":"t","body":"","id":`+string(text)+`}`)
			// Every byte escaped: the strictest reading of a path.
			var path strings.Builder
			path.WriteString("/v1/jobs/")
			for _, c := range []byte(id) {
				path.WriteString("%" + strings.ToUpper(string("0123456789abcdef"[c>>4])+string("0123456789abcdef"[c&15])))
			}
			a := decoded(t, r.do("GET", path.String(), ""))
			require.Equal(t, id, a["id"])
			r.ok("/v1/reserve", `{"topics":["t"]}`)
			require.Equal(t, id, r.ok(path.String()+"/finish", "")["id"])
		})
	}
}

func TestEachFailureHasItsStatus(t *testing.T) {
	for code, status := range statuses {
		t.Run(string(code), func(t *testing.T) {
			r := newRig(t)
			r.queue.FailNext(job.Errorf(code, "because").In("because"))
			w := r.post("/v1/jobs", `{"topic":"t","body":""}`)
			refused(t, w, status, code, "because")
			outcome := map[job.Code]any{
				job.CodeNotApplied: "not_applied", job.CodeOverloaded: "not_applied", job.CodeTopicFull: "not_applied", job.CodeTopicLimited: "not_applied", job.CodeRateLimited: "not_applied", job.CodeOverQuota: "not_applied", job.CodeDiskLow: "not_applied", job.CodeStandby: "not_applied", job.CodeUnknown: "unknown",
			}[code]
			require.Equal(t, outcome == "not_applied", w.Header().Get("Retry-After") == "1")
			require.Equal(t, outcome, decoded(t, w)["outcome"])
		})
	}
}

func TestErrorsWithoutACode(t *testing.T) {
	r := newRig(t)
	r.queue.FailNext(io.ErrUnexpectedEOF)
	w := r.do("GET", "/v1/jobs/a", "")
	refused(t, w, 500, job.CodeInternal, "server failed")
	require.NotContains(t, w.Body.String(), "EOF", "the inside is not shown")
}

func TestOperatorsFailures(t *testing.T) {
	r := newRig(t)
	r.operator.Err = job.Errorf(job.CodeQuorumWouldFail, "1 of 2")
	for _, call := range []string{
		"GET /v1/cluster/members", "GET /v1/cluster/health", "POST /v1/cluster/verify", "POST /v1/cluster/leave",
		"POST /v1/cluster/transfer-leadership", "DELETE /v1/cluster/members/n1",
	} {
		method, path, _ := strings.Cut(call, " ")
		refused(t, r.do(method, path, ""), 409, job.CodeQuorumWouldFail, "1 of 2")
	}
	r.operator.Err = nil
	for body, says := range map[string]string{
		``:                          "empty",
		`{}`:                        "addresses has 0 items",
		`{"addresses":["host"]}`:    "addresses[0]",
		`{"addresses":["a:1",":"]}`: "addresses[1]",
		`{"addresses":["a:70000"]}`: "host:port",
		`{"addresses":"a:1"}`:       "a list",
	} {
		w := r.post("/v1/cluster/join", body)
		require.Equal(t, 400, w.Code)
		require.Contains(t, w.Body.String(), says)
	}
	require.Empty(t, r.operator.Calls())
}

func TestReadiness(t *testing.T) {
	draining := false
	r := newRig(t, func(o *Options) { o.Draining = func() bool { return draining } })
	r.operator.Leader = "host1:7300"
	w := r.do("GET", "/readyz", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "n1", decoded(t, w)["leader"])

	require.Equal(t, "host1:7300", w.Header().Get("Tarry-Leader"))

	r.operator.NotReady = []string{"no leader for 3 s"}
	w = r.do("GET", "/readyz", "")
	refused(t, w, 503, codeNotReady, "no leader")
	require.NotContains(t, w.Header(), "Tarry-Leader")
	require.Equal(t, 200, r.do("GET", "/livez", "").Code, "a node without a leader is alive")

	r.operator.NotReady = nil
	draining = true
	w = r.do("GET", "/readyz", "")
	refused(t, w, 503, codeNotReady, "draining")
	require.Equal(t, "close", w.Header().Get("Connection"))
}

func TestAPanicFailsOnlyOneRequest(t *testing.T) {
	var log strings.Builder
	r := newRig(t, func(o *Options) {
		o.Queue = nil // calling it panics
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	refused(t, r.do("GET", "/v1/topics", ""), 500, job.CodeInternal, "defect")
	require.Contains(t, log.String(), "panicked")
	require.Contains(t, log.String(), "topics.go", "the stack is logged")
	require.Equal(t, 200, r.do("GET", "/livez", "").Code)
}

func TestForeignPagesMayNotWrite(t *testing.T) {
	r := newRig(t)
	q := httptest.NewRequest("POST", "/v1/jobs", strings.NewReader(`{"topic":"t","body":""}`))
	q.Header.Set("Origin", "https://elsewhere.example")
	q.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	refused(t, w, 403, codeCrossOrigin, "origin")
	require.Empty(t, r.queue.Ops())
}

func TestRequestsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newRig(t, func(o *Options) { o.Registry = registry })
	r.ok("/v1/jobs", `{"topic":"t","body":""}`)
	r.ok("/v1/jobs", `{"topic":"t","body":""}`)
	r.post("/v1/jobs", ``)
	r.do("GET", "/v1/jobs/a", "")
	r.ok("/v1/jobs/batch", `{"jobs":[{"topic":"t","body":""}]}`)
	r.do("BREW", "/v1/jobs", "")
	r.do("GET", "/nothing", "")
	families, err := registry.Gather()
	require.NoError(t, err)
	counts, timed := map[string]float64{}, map[string]uint64{}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += l.GetValue() + " "
			}
			if f.GetName() == "tarry_http_requests_total" {
				counts[labels] = m.Counter.GetValue()
			} else if f.GetName() == "tarry_http_request_seconds" {
				timed[labels] = m.Histogram.GetSampleCount()
			}
		}
	}
	require.Equal(t, map[string]float64{
		"POST /v1/jobs 201 ": 2, "POST /v1/jobs 400 ": 1, "GET /v1/jobs/{id} 404 ": 1,
		"POST /v1/jobs/batch 200 ": 1, "other /v1/jobs 405 ": 1, "GET none 404 ": 1,
	}, counts)
	require.Equal(t, map[string]uint64{
		"POST /v1/jobs ": 3, "GET /v1/jobs/{id} ": 1, "POST /v1/jobs/batch ": 1, "other /v1/jobs ": 1, "GET none ": 1,
	}, timed, "a method and path without requests has no series")
}

func TestManagementCallsAreLoggedWithCallerAndCall(t *testing.T) {
	var log strings.Builder
	h := New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for line, logged := range map[string]bool{
		"POST /v1/topics/mail/purge":     true,
		"PUT /v1/topics/mail/settings":   true,
		"GET /v1/topics/mail/settings":   false,
		"POST /v1/topics/mail/pause":     true,
		"DELETE /v1/cluster/members/n3":  true,
		"DELETE /v1/schedules/nightly":   true,
		"GET /v1/cluster/members":        false,
		"POST /v1/jobs":                  false,
		"POST /v1/topics/m%0Aail/resume": true,
	} {
		log.Reset()
		method, path, _ := strings.Cut(line, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Host, r.RemoteAddr = "localhost", "192.0.2.7:99"
		h.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, logged, strings.Contains(log.String(), "from=192.0.2.7:99"), line)
		require.Equal(t, logged, strings.Contains(log.String(), `call="`+line), line)
	}
}

func TestTheFieldsThatACallSetsAreLoggedWithoutTheirValues(t *testing.T) {
	var log strings.Builder
	h := New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct{ call, body, fields string }{
		{"PUT /v1/topics/mail/settings", `{"ttr":30,"push":{"url":"https://example.com/hook","secret":"whsec_secretsecretsecret"}}`, `fields="[ttr push]"`},
		{"PATCH /v1/topics/mail/settings?if_revision=77", `{"max_pending":5}`, "fields=[max_pending]"},
		{"POST /v1/topics/mail/pause", `{"for":60}`, "fields=[for]"},
		{"POST /v1/topics/mail/pause", ``, ""},
		{"PATCH /v1/topics/mail/settings", `{"secret_in_a_wrong_name":1}`, ""},
	} {
		log.Reset()
		method, path, _ := strings.Cut(c.call, " ")
		r := httptest.NewRequest(method, path, strings.NewReader(c.body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
		require.Contains(t, log.String(), "management call")
		require.Equal(t, c.fields != "", strings.Contains(log.String(), "fields="), log.String())
		require.Contains(t, log.String(), c.fields)
		require.NotContains(t, log.String(), "secret")
	}
}

// A client can cause any number of refusals. Each is a warning, and the process logs only
// some of them.
func TestRefusedManagementCallsAreWarnings(t *testing.T) {
	var log strings.Builder
	h := New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for body, level := range map[string]string{`{"nonsense":1}`: "WARN", `{"for":60}`: "INFO"} {
		log.Reset()
		r := httptest.NewRequest("POST", "/v1/topics/mail/pause", strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
		require.Contains(t, log.String(), "level="+level, body)
	}
}
