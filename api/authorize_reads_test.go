package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// as makes a call with the token of an id.
func (r *rig) as(id, method, path, body string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer "+secretFor(r.t, id).Text())
	return held(r.t, r.handler, q)
}

// tenants is a queue with jobs of two tenants, of which the token a may read one, and the token
// all both. Nothing is checked for calls of open.
func tenants(t *testing.T, change ...func(*Options)) (closed, open *rig) {
	s := auth.NewState(1, true, &jobpb.AuthSettings{Mode: enforce}, nil)
	for id, topics := range map[string]string{"a": "a.*", "all": "*"} {
		s = s.WithToken(s.Revision+1, auth.NewToken(&jobpb.Token{Id: id, Hash: secretFor(t, id).Hash(), Rules: []*jobpb.Rule{ruleOf(t, topics, "read manage add consume")}}))
	}
	control := access.Open(access.Options{Source: fixed{s}})
	t.Cleanup(control.Close)
	var queue Queue
	closed = newRig(t, append([]func(*Options){func(o *Options) { o.Access, queue = control, o.Queue }}, change...)...)
	open = &rig{t: t, handler: New(Options{Queue: queue, Operator: closed.operator, Hosts: []string{"example.com"}})}
	for _, topic := range []string{"a.1", "b.1", "a.2", "b.2"} {
		open.ok("/v1/jobs", `{"topic":"`+topic+`","id":"job-`+topic+`","due_at":"2040-01-01T00:30:00Z","body":1}`)
		open.ok("/v1/jobs", `{"topic":"`+topic+`","id":"dead-`+topic+`","headers":{"order":"`+topic[:1]+`"},"body":1}`)
		got := open.ok("/v1/reserve", `{"topics":["`+topic+`"]}`)
		token := got["jobs"].([]any)[0].(map[string]any)["token"].(string)
		open.ok("/v1/jobs/dead-"+topic+"/bury", `{"token":"`+token+`","reason":"broken"}`)
		require.Equal(t, http.StatusOK, open.do(http.MethodPatch, "/v1/topics/"+topic+"/settings", `{"max_pending":100,"index_headers":["order"]}`).Code)
		w := open.do(http.MethodPut, "/v1/schedules/"+topic, `{"spec":"@daily","job":{"topic":"`+topic+`","body":1}}`)
		require.Equal(t, http.StatusCreated, w.Code, w.Body)
	}
	return closed, open
}

// A namespace shows what all of its topics hold, so a token sees it only if it may read all of them.
func TestATokenSeesTheNamespacesOfWhichItMayReadEveryTopic(t *testing.T) {
	r, open := tenants(t)
	for prefix, status := range map[string]int{"a": http.StatusNotFound, "a.": http.StatusOK, "a.1": http.StatusOK, "b.": http.StatusNotFound} {
		w := open.do(http.MethodPut, "/v1/namespaces/n", `{"topic_prefix":"`+prefix+`"}`)
		require.Less(t, w.Code, 300, "%s: %s", prefix, w.Body)
		require.Equal(t, status, r.as("a", "GET", "/v1/namespaces/n", "").Code, prefix)
		require.Equal(t, http.StatusOK, r.as("all", "GET", "/v1/namespaces/n", "").Code, prefix)
		require.Equal(t, http.StatusOK, open.do(http.MethodDelete, "/v1/namespaces/n", "").Code)
	}
}

func TestAPreviewNeedsAToken(t *testing.T) {
	r, _ := tenants(t)
	require.Equal(t, http.StatusUnauthorized, r.do(http.MethodPost, "/v1/schedules/preview", `{"spec":"@daily"}`).Code)
	require.Equal(t, http.StatusOK, r.as("a", "POST", "/v1/schedules/preview", `{"spec":"@daily"}`).Code)
}

// A token sees only what it may read, wherever it looks.
func TestReadsShowWhatATokenMayRead(t *testing.T) {
	r, _ := tenants(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		has                string
	}{
		{"GET", "/v1/jobs/job-a.1", "", 200, "a.1"},
		{"GET", "/v1/jobs/job-b.1", "", 404, "does not exist"},
		{"GET", "/v1/jobs/nothing", "", 404, "does not exist"},
		{"GET", "/v1/jobs/job-b.1/history", "", 404, "does not exist"},
		{"GET", "/v1/jobs/job-b.1/explain", "", 404, "does not exist"},
		{"GET", "/v1/jobs/job-a.1/explain", "", 200, "not_due"},
		{"POST", "/v1/get", `{"ids":["job-a.1","job-b.1"]}`, 200, `"code":"not_found"`},
		{"GET", "/v1/jobs?id_prefix=job-", "", 200, "job-a.2"},
		{"GET", "/v1/topics", "", 200, `"topic":"a.2"`},
		{"GET", "/v1/topics?max=1", "", 200, `"next":"a.1"`},
		{"GET", "/v1/topics?max=1&cursor=a.1", "", 200, `"topic":"a.2"`},
		{"GET", "/v1/topics?cursor=a.2", "", 200, `"topics":[]`},
		{"GET", "/v1/topics/a.1", "", 200, `"delayed":1`},
		{"GET", "/v1/topics/b.1", "", 403, `read on topic \"b.1\"`},
		{"GET", "/v1/topics/b.1/jobs", "", 403, "forbidden"},
		{"GET", "/v1/topics/b.1/settings", "", 403, "forbidden"},
		{"GET", "/v1/topics/b.1/rates", "", 403, "forbidden"},
		{"GET", "/v1/topics/b.1/forecast", "", 403, "forbidden"},
		{"GET", "/v1/topics/b.1/dead", "", 403, "forbidden"},
		{"GET", "/v1/topic-settings", "", 200, `"topic":"a.2"`},
		{"GET", "/v1/stats", "", 200, `"topics":2,"delayed":2,"ready":0,"reserved":0,"dead":2`},
		{"GET", "/v1/schedules", "", 200, `"schedule":"a.2"`},
		{"GET", "/v1/schedules?max=1", "", 200, `"next":"a.1"`},
		{"GET", "/v1/schedules/b.1", "", 404, "no schedule"},
		{"GET", "/v1/schedules/b.1/runs", "", 404, "no schedule"},
		{"GET", "/v1/schedules/b.1/preview", "", 404, "no schedule"},
		{"GET", "/v1/dead/topics?exact_reason=broken", "", 200, `"jobs":2,"topics":2`},
		{"GET", "/v1/forecast/topics?start=2040-01-01T00:00:00Z", "", 200, `"jobs":2`},
		{"GET", "/v1/rates", "", 403, "all topics"},
		{"GET", "/v1/forecast", "", 403, "all topics"},
		{"GET", "/v1/dead", "", 403, "all topics"},
		{"POST", "/v1/dead/kick", `{"exact_reason":"broken","all":true}`, 403, "all topics"},
		{"POST", "/v1/reserve", `{"topics":["a.1","b.1"]}`, 403, `consume on topic \"b.1\"`},
		{"POST", "/v1/jobs", `{"topic":"b.1","body":1}`, 403, `add on topic \"b.1\"`},
		{"POST", "/v1/topics/a.1/move", `{"to":"b.1"}`, 403, `add on topic \"b.1\"`},
		{"POST", "/", `{"command":"add","topic":"b.1","body":1}`, 403, `add on topic \"b.1\"`},
		{"PUT", "/v1/schedules/a.9", `{"spec":"@daily","job":{"topic":"b.1","body":1}}`, 403, `topic \"b.1\"`},
	} {
		w := r.as("a", c.method, c.path, c.body)
		require.Equal(t, c.status, w.Code, "%s %s: %s", c.method, c.path, w.Body)
		require.Contains(t, w.Body.String(), c.has, "%s %s", c.method, c.path)
		if c.status == http.StatusOK {
			require.NotContains(t, w.Body.String(), `b.1"`, "%s %s", c.method, c.path)
			require.NotContains(t, w.Body.String(), `b.2"`, "%s %s", c.method, c.path)
		}
		w = r.as("all", c.method, c.path, c.body)
		require.NotContains(t, []int{401, 403}, w.Code, "%s %s: %s", c.method, c.path, w.Body)
	}
}

// A search by a token finds as many pages as there are jobs that it may read, and no cursor names
// another job.
func TestASearchShowsNothingOfJobsThatATokenMayNotRead(t *testing.T) {
	r, _ := tenants(t)
	for query, jobs := range map[string]int{
		"id_prefix=job-":                            2,
		"id_prefix=job-b":                           0,
		"id_prefix=d&state=dead":                    2,
		"id_prefix=dead-b.&state=dead":              0,
		"id_prefix=j&due_from=2039-01-01T00:00:00Z": 2,
		"header.order=a":                            2,
		"header.order=b":                            0,
		"header.order=nothing":                      0,
	} {
		found, cursor := 0, ""
		for {
			w := r.as("a", "GET", "/v1/jobs?"+query+"&max=1&cursor="+cursor, "")
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", query, w.Body)
			var page struct {
				Jobs []struct{ Topic string }
				Next string
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
			found += len(page.Jobs)
			if cursor = page.Next; cursor == "" {
				break
			}
			require.Len(t, page.Jobs, 1, query)
			b, err := base64.RawURLEncoding.DecodeString(cursor)
			require.NoError(t, err)
			require.NotContains(t, string(b), "b.", query)
		}
		require.Equal(t, jobs, found, query)
	}
}

// A search that has to pass over too many hidden jobs fails, which tells that there are so many. That
// must be as many for a page of one job as for any other.
func TestASearchForOneJobPassesOverManyHiddenOnes(t *testing.T) {
	r, open := tenants(t)
	var jobs []string
	for i := range 100 {
		jobs = append(jobs, fmt.Sprintf(`{"topic":"b.1","id":"many-%d","headers":{"order":"many"},"body":1}`, i))
	}
	open.ok("/v1/jobs/batch", `{"jobs":[`+strings.Join(jobs, ",")+`]}`)
	for _, query := range []string{"id_prefix=many-", "header.order=many"} {
		w := r.as("a", "GET", "/v1/jobs?"+query+"&max=1", "")
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", query, w.Body)
		require.NotContains(t, w.Body.String(), "many", query)
	}
}

// Whether a topic that a token may not read indexes a header, and is being indexed, is not seen.
func TestASearchDoesNotTellWhichHeadersOtherTopicsIndex(t *testing.T) {
	r, open := tenants(t)
	require.Equal(t, http.StatusOK, open.do(http.MethodPatch, "/v1/topics/b.1/settings", `{"index_headers":["order","secret"]}`).Code)
	hidden, absent := r.as("a", "GET", "/v1/jobs?header.secret=1", ""), r.as("a", "GET", "/v1/jobs?header.absent=1", "")
	require.Equal(t, http.StatusOK, hidden.Code, hidden.Body)
	require.Equal(t, hidden.Code, absent.Code, absent.Body)
	require.JSONEq(t, hidden.Body.String(), absent.Body.String())
	require.Equal(t, http.StatusOK, r.as("all", "GET", "/v1/jobs?header.secret=1", "").Code)
	refused(t, r.as("all", "GET", "/v1/jobs?header.absent=1", ""), http.StatusBadRequest, job.CodeInvalid, "is not indexed by any topic")
	refused(t, r.as("a", "GET", "/v1/jobs?header.absent=", ""), http.StatusBadRequest, job.CodeInvalid, "is empty")
}

func TestASearchIsIncompleteOnlyByTopicsThatATokenMayRead(t *testing.T) {
	r, open := tenants(t, func(o *Options) { o.Queue = indexing{o.Queue} })
	require.Equal(t, http.StatusOK, open.do(http.MethodPatch, "/v1/topics/b.1/settings", `{"index_headers":["order","secret"]}`).Code)
	require.Equal(t, true, decoded(t, r.as("a", "GET", "/v1/jobs?header.order=a", ""))["incomplete"])
	require.Nil(t, decoded(t, r.as("a", "GET", "/v1/jobs?header.secret=1", ""))["incomplete"])
	require.Equal(t, true, decoded(t, r.as("all", "GET", "/v1/jobs?header.secret=1", ""))["incomplete"])
}
