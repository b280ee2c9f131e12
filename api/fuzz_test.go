package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tarry/api/apitest"
)

// FuzzRequests sends any bytes to every call with a request body. No call may panic, respond
// with 500, or respond with something other than JSON.
func FuzzRequests(f *testing.F) {
	paths := []string{"/", "/v1/jobs", "/v1/jobs/batch", "/v1/reserve", "/v1/jobs/a/release", "/v1/release", "/v1/topics/t/kick", "/v1/cluster/join", "/v1/topics/t/purge", "/v1/topics/t/move"}
	for i, body := range []string{
		`{"Command":"add","topic":"t","TTR":1.5,"body":{"a":[1]}}`,
		`{"topic":"t","id":"a","due_at":"2030-01-01T00:00:00Z","body":"\u00fc"}`,
		`{"jobs":[{"topic":"t","delay":1e3,"body_base64":"/w=="},null]}`,
		`{"topics":["t"],"max":2,"wait":0,"ttr":0.001}`,
		`{"token":"0-1-1","delay":0,"priority":4294967295,"reason":"x"}`,
		`{"jobs":[{"id":"$0-1"},{"token":"0-1-1","reason":null}]}`,
		`{"max":10000}`,
		`{"addresses":["[::1]:7302"]}`,
		`{"state":"dead","all":true,"filter":{"died_to":5,"headers":{"a":"b"},"id_prefix":"x"}}`,
		`{"to":"u","states":["dead","ready"]}`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Add(uint8(3), []byte(`{"topics":["t"],"finish":[{"id":"a","token":"0-1-1"},{"token":"0-2-1"},{"id":null}]}`))
	h := New(Options{Queue: apitest.New(f), Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		if bytes.Contains(body, []byte("wait")) || bytes.Contains(bytes.ToLower(body), []byte("timeout")) {
			t.Skip("a wait would only take time")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", paths[int(path)%len(paths)], bytes.NewReader(body)))
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
	})
}

// FuzzBodies adds a job with any body and reads it back: the value must be the
// same, as another JSON package understands it.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{`""`, `"a\u0000\ud83d\ude00"`, `{"a": [1.50, null]}`, `null`, `-0`} {
		f.Add([]byte(body))
	}
	h := New(Options{Queue: apitest.New(f), Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	f.Fuzz(func(t *testing.T, body []byte) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("DELETE", "/v1/jobs/a", nil))
		w := httptest.NewRecorder()
		request := append(append([]byte(`{"topic":"t","id":"a","body":`), body...), '}')
		h.ServeHTTP(w, httptest.NewRequest("POST", "/v1/jobs", bytes.NewReader(request)))
		if w.Code != 201 {
			return
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/jobs/a", nil))
		var sent, got struct{ Body json.RawMessage }
		if err := json.Unmarshal(request, &sent); err != nil {
			t.Fatalf("%s was taken: %v", request, err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s came back as %s: %v", body, w.Body, err)
		}
		if sent.Body[0] != '"' {
			if !bytes.Equal(sent.Body, got.Body) {
				t.Fatalf("%s came back as %s", sent.Body, got.Body)
			}
			return
		}
		var a, b string
		if json.Unmarshal(sent.Body, &a) != nil || json.Unmarshal(got.Body, &b) != nil || a != b {
			t.Fatalf("%s came back as %s", sent.Body, got.Body)
		}
	})
}

// FuzzURLs sends any path, query and headers with any method. No call may panic or respond
// with 500. Errors are JSON, and a page of topics has at most the requested size.
func FuzzURLs(f *testing.F) {
	for _, c := range [][4]string{
		{"GET", "/v1/jobs/a%2Fb", "consistency=stale", ""},
		{"DELETE", "/v1/jobs/$0-1", "token=0-1-1", ""},
		{"GET", "/v1/topics", "after=a&max=1", ""},
		{"GET", "/v1/topics", "max=9223372036854775808", ""},
		{"GET", "/v1/topics/%ff", "consistency=", ""},
		{"HEAD", "/v1/cluster/health", "", ""},
		{"POST", "/v1/jobs/../jobs/%2e%2e/kick", "%zz", "Content-Encoding: gzip"},
		{"DELETE", "/v1/cluster/members/n1", "a=1&a=2", "Origin: http://other"},
		{"POST", "/v1/reserve", "", "Transfer-Encoding: chunked"},
		{"OPTIONS", "*", "", ""},
		{"PUT", "/v1/topics/t/settings", "if_revision=0", ""},
		{"PATCH", "/v1/topics/t/settings", "if_revision=18446744073709551616", ""},
		{"GET", "/v1/jobs", "header.order=5&max=3&cursor=AQ", ""},
		{"DELETE", "/v1/jobs", "header.order=5&all=true&topic=t", ""},
		{"POST", "/v1/jobs/kick", "id_prefix=a&max=5", ""},
	} {
		f.Add(c[0], c[1], c[2], c[3])
	}
	h := New(Options{Queue: apitest.New(f), Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	f.Fuzz(func(t *testing.T, method, path, query, header string) {
		r, err := http.NewRequest(method, "http://node", strings.NewReader("{}"))
		if err != nil {
			return // the server rejects it too
		}
		if r.URL.Path, err = url.PathUnescape(path); err != nil {
			return
		}
		r.URL.RawPath, r.URL.RawQuery = path, query
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header[http.CanonicalHeaderKey(name)] = []string{value}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusInternalServerError:
			t.Fatalf("%s %s?%s: %s", method, path, query, w.Body)
		case w.Code >= 400 && method != http.MethodHead && !json.Valid(w.Body.Bytes()):
			t.Fatalf("%s %s?%s: %d %s", method, path, query, w.Code, w.Body)
		}
	})
}

// FuzzSchedules puts any schedule. It gets an error in JSON, or is stored, returned and
// previewed.
func FuzzSchedules(f *testing.F) {
	for _, body := range []string{
		`{"spec":"30 2 * * *","zone":"Europe/Berlin","job":{"topic":"t","body":"{{run}}"}}`,
		`{"spec":"@every 1h","start":1,"end":"2040-01-01T00:00:00Z","jitter":1e3,"overlap":"skip","missed":"all","missed_max":3,"missed_after":0.5,"paused":true,"job":{"topic":"t","headers":{"a":"b"},"backoff":5,"body_base64":"/w=="}}`,
		`{"spec":"0 0 30 2 *","job":{"topic":"t","body":null,"delay":1}}`, `{"spec":"* * * *","if_revision":0}`,
	} {
		f.Add([]byte(body))
	}
	h := New(Options{Queue: apitest.New(f), Operator: &apitest.Operator{}, Hosts: []string{"*"}})
	do := func(method, path string, body []byte) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, bytes.NewReader(body)))
		return w
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		put := do("PUT", "/v1/schedules/s", body)
		do("POST", "/v1/schedules/preview", body)
		shown, preview := do("GET", "/v1/schedules/s", nil), do("GET", "/v1/schedules/s/preview?count=2", nil)
		do("DELETE", "/v1/schedules/s", nil)
		for _, w := range []*httptest.ResponseRecorder{put, shown, preview} {
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) || (put.Code < 300) != (w.Code < 300) {
				t.Fatalf("%s: %d, then %d %s", body, put.Code, w.Code, w.Body)
			}
		}
	})
}
