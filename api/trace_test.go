package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/wire"
)

const (
	sampleParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherParent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01"
)

// traced sends a request with a trace context, whose lines are a name and a value each.
func (r *rig) traced(path, body string, header ...string) map[string]any {
	q := httptest.NewRequest("POST", path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		q.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	require.Less(r.t, w.Code, 300, w.Body.String())
	return decoded(r.t, w)
}

// reservedHeaders reserves the next job and returns its headers.
func (r *rig) reservedHeaders() map[string]any {
	jobs := r.ok("/v1/reserve", `{"topics":["t"]}`)["jobs"].([]any)
	require.Len(r.t, jobs, 1)
	h, _ := jobs[0].(map[string]any)["headers"].(map[string]any)
	return h
}

func TestATraceComesBackWithTheJob(t *testing.T) {
	full := map[string]any{"traceparent": sampleParent, "tracestate": "a=1,b=2"}
	for _, c := range []struct{ name, path, body string }{
		{"one", "/v1/jobs", `{"topic":"t","body":1}`},
		{"batch", "/v1/jobs/batch", `{"jobs":[{"topic":"t","body":1}]}`},
		{"atomic batch", "/v1/jobs/batch", `{"jobs":[{"topic":"t","body":1}],"atomic":true}`},
		{"command", "/", `{"command":"add","topic":"t","body":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.traced(c.path, c.body, "traceparent", sampleParent, "tracestate", "a=1", "tracestate", "b=2")
			require.Equal(t, full, r.reservedHeaders())
		})
	}
	t.Run("after a finish", func(t *testing.T) {
		r := newRig(t)
		r.ok("/v1/jobs", `{"topic":"u","id":"a","body":1}`)
		r.ok("/v1/reserve", `{"topics":["u"]}`)
		r.traced("/v1/jobs/a/finish", `{"then":[{"topic":"t","body":2}]}`, "Traceparent", sampleParent)
		require.Equal(t, map[string]any{"traceparent": sampleParent}, r.reservedHeaders())
	})
}

func TestATraceIsAddedToTheHeadersOfAJob(t *testing.T) {
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"h%d":"v"`, i))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	for _, c := range []struct {
		name, headers string
		request       []string
		parent, state any
		count         int
	}{
		{"others stay", `{"a":"b"}`, []string{"traceparent", sampleParent}, sampleParent, nil, 2},
		{"its own count", `{"traceparent":"` + otherParent + `"}`, []string{"traceparent", sampleParent, "tracestate", "a=1"}, otherParent, nil, 1},
		{"a state belongs to its parent", `{"tracestate":"b=2"}`, []string{"traceparent", sampleParent}, sampleParent, nil, 1},
		{"an invalid state is left out", `{}`, []string{"traceparent", sampleParent, "tracestate", strings.Repeat("a", 513)}, sampleParent, nil, 1},
		{"an invalid parent is ignored", `{"a":"b"}`, []string{"traceparent", "00-what", "tracestate", "a=1"}, nil, nil, 1},
		{"two parents are ignored", `{"a":"b"}`, []string{"traceparent", sampleParent, "traceparent", sampleParent}, nil, nil, 1},
		{"a state alone is ignored", `{"a":"b"}`, []string{"tracestate", "a=1"}, nil, nil, 1},
		{"no room for names", many(63), []string{"traceparent", sampleParent, "tracestate", "a=1"}, nil, nil, 63},
		{"no room for bytes", `{"a":"` + strings.Repeat("v", 8<<10-2) + `"}`, []string{"traceparent", sampleParent}, nil, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.traced("/v1/jobs", `{"topic":"t","body":1,"headers":`+c.headers+`}`, c.request...)
			got := r.reservedHeaders()
			require.Equal(t, c.parent, got["traceparent"])
			require.Equal(t, c.state, got["tracestate"])
			require.Len(t, got, c.count)
		})
	}
}

// A client that repeats an add begins another span, and the job is the same.
func TestARepeatedAddMayHaveAnotherTrace(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/v1/jobs", "/v1/jobs/batch"} {
		one := fmt.Sprintf(`{"topic":"t","id":"of %s","body":1,"headers":{"a":"b"}}`, path)
		body := one
		if path == "/v1/jobs/batch" {
			body = `{"jobs":[` + one + `],"atomic":true}`
		}
		existing := func(header ...string) any {
			reply := r.traced(path, body, header...)
			if results, found := reply["results"].([]any); found {
				reply = results[0].(map[string]any)
			}
			require.Equal(t, true, reply["success"], reply)
			return reply["existing"]
		}
		require.Equal(t, false, existing("traceparent", sampleParent, "tracestate", "a=1"))
		require.Equal(t, true, existing("traceparent", otherParent))
		require.Equal(t, true, existing())
		w := r.do("POST", "/v1/jobs", strings.Replace(one, `"a":"b"`, `"a":"c"`, 1))
		refused(t, w, 409, "id_conflict", "headers")
	}
	require.Equal(t, sampleParent, r.reservedHeaders()["traceparent"], "that of the first add")
}

// What a request without a context costs, and one with it until the job's headers are made.
func TestARequestWithoutATraceAllocatesNothingForIt(t *testing.T) {
	q := httptest.NewRequest("POST", "/v1/jobs", nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var h wire.Headers
		traceOf(q).addTo(&h)
	}))
}
