package api

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// pages reads all pages of a listing and returns the ids of each.
func (r *rig) pages(path string) (pages [][]string) {
	r.t.Helper()
	for cursor := ""; ; {
		at := path
		if cursor != "" {
			at += "&cursor=" + cursor
		}
		w := r.do("GET", at, "")
		require.Equal(r.t, 200, w.Code, w.Body.String())
		answer := decoded(r.t, w)
		ids := []string{}
		for _, j := range answer["jobs"].([]any) {
			ids = append(ids, j.(map[string]any)["id"].(string))
		}
		pages = append(pages, ids)
		next, ok := answer["next"].(string)
		if !ok {
			return pages
		}
		cursor = next
	}
}

// dead adds jobs to a topic and buries them.
func (r *rig) dead(topic, reason string, ids ...string) {
	for _, id := range ids {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":%q,"id":%q,"body":1,"priority":0,"headers":{"tenant":%q}}`, topic, id, id[:1]))
		r.ok("/v1/reserve", fmt.Sprintf(`{"topics":[%q]}`, topic))
		r.ok("/v1/jobs/"+id+"/bury", fmt.Sprintf(`{"reason":%q}`, reason))
	}
}

func TestListsOfATopic(t *testing.T) {
	r := newRig(t)
	r.dead("t", "no route", "a1", "b1")
	r.dead("t", "too big", "a2")
	r.ok("/v1/jobs", `{"topic":"t","id":"r2","body":1,"priority":2}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"r1","body":1,"priority":1}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"d2","body":1,"due_at":"2050-01-01T00:00:00Z"}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"d1","body":1,"due_at":"2040-01-01T00:00:00Z"}`)
	r.ok("/v1/jobs", `{"topic":"u","id":"d3","body":1,"due_at":"2040-01-01T00:00:00Z"}`)
	for query, want := range map[string][][]string{
		"?max=1000":                      {{"d1", "d2", "r1", "r2", "a1", "b1", "a2"}},
		"?max=3":                         {{"d1", "d2", "r1"}, {"r2", "a1", "b1"}, {"a2"}},
		"?max=2":                         {{"d1", "d2"}, {"r1", "r2"}, {"a1", "b1"}, {"a2"}},
		"?state=dead&max=2":              {{"a1", "b1"}, {"a2"}},
		"?state=reserved":                {{}},
		"?due_from=2045-01-01T00:00:00Z": {{"d2"}},
		"?due_to=2045-01-01T00:00:00Z&state=delayed":   {{"d1"}},
		"?due_from=2208988800000&due_to=2524608000000": {{"d1"}},
		"?died_from=2020-01-01T00:00:00Z":              {{"a1", "b1", "a2"}},
		"?reason=route":                                {{"a1", "b1"}},
		"?header.tenant=a&max=1":                       {{"a1"}, {"a2"}},
		"?id_prefix=a":                                 {{"a1", "a2"}},
		"?id_prefix=a&max=1":                           {{"a1"}, {"a2"}},
		"?id_prefix=d&state=dead":                      {{}},
		"?consistency=stale&id_prefix=d":               {{"d1", "d2"}},
	} {
		t.Run(query, func(t *testing.T) { require.Equal(t, want, r.pages("/v1/topics/t/jobs"+query)) })
	}
	require.Equal(t, [][]string{{"d1", "d2"}, {"d3"}}, r.pages("/v1/jobs?id_prefix=d&max=2"))
	require.Equal(t, [][]string{{"d3"}}, r.pages("/v1/jobs?id_prefix=d&topic=u"))
	require.Equal(t, [][]string{{}}, r.pages("/v1/topics/nobody/jobs?"))
}

func TestListsHaveBodiesOnRequest(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":{"n":1}}`)
	first := func(query string) map[string]any {
		return decoded(t, r.do("GET", "/v1/topics/t/jobs"+query, ""))["jobs"].([]any)[0].(map[string]any)
	}
	require.NotContains(t, first(""), "body")
	require.NotContains(t, first("?body=false"), "body")
	require.Equal(t, map[string]any{"n": 1.0}, first("?body=true")["body"])
}

func TestInvalidListings(t *testing.T) {
	r := newRig(t)
	r.dead("t", "x", "a", "b")
	cursor := decoded(t, r.do("GET", "/v1/topics/t/jobs?max=1", ""))["next"].(string)
	require.NotEmpty(t, cursor)
	for query, says := range map[string]string{
		"?state=gone":    `state is "gone"`,
		"?max=0":         "max is 0",
		"?max=1001":      "between 1 and 1000",
		"?max=x":         "whole number",
		"?body=yes":      "true or false",
		"?due_from=soon": "due_from",
		"?due_to=1.5":    "due_to is 1.5",
		"?due_from=100000000009&due_to=100000000009": "the range is empty",
		"?id_prefix=%240-1":                          "id_prefix",
		"?reason=%ff":                                "reason is not valid UTF-8",
		"?header.=x":                                 "headers is missing or empty",
		"?headers=x":                                 `"headers" is not known`,
		"?consistency=maybe":                         "consistency",
		"?cursor=!":                                  "cursor is not one that this listing gave",
		"?cursor=AA":                                 "cursor is not one",
		"?cursor=Ag":                                 "cursor is not one",
		"?cursor=AgAAAAD_":                           "cursor is not one",
		"?cursor=AgAAAAA":                            "cursor belongs to another query",
		"?cursor=" + emptyMark(t):                    "cursor is not of this listing",
		"?state=ready&cursor=" + cursor:              "cursor belongs to another query",
		"?id_prefix=a&cursor=" + cursor:              "cursor belongs to another query",
		"?reason=x&cursor=" + cursor:                 "cursor belongs to another query",
		"?cursor=" + strings.Repeat("A", 500):        "cursor is not one",
	} {
		t.Run(query, func(t *testing.T) {
			refused(t, r.do("GET", "/v1/topics/t/jobs"+query, ""), 400, job.CodeInvalid, says)
		})
	}
	refused(t, r.do("GET", "/v1/jobs", ""), 400, job.CodeInvalid, "id_prefix or header.NAME is missing")
	refused(t, r.do("GET", "/v1/jobs?id_prefix=a&topic="+url.QueryEscape("\n"), ""), 400, job.CodeInvalid, "topic")
	refused(t, r.do("GET", "/v1/topics/%00/jobs", ""), 400, job.CodeInvalid, "topic")
}

// index sets the headers by which the jobs of a topic are found.
func (r *rig) index(topic, names string) {
	w := r.do("PATCH", "/v1/topics/"+topic+"/settings", `{"index_headers":`+names+`}`)
	require.Equal(r.t, 200, w.Code, w.Body.String())
}

func TestJobsAreFoundByHeader(t *testing.T) {
	r := newRig(t)
	r.index("mail", `["order"]`)
	r.index("push", `["tenant","order"]`)
	add := func(topic, id, headers string) {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":%q,"id":%q,"body":1,"headers":%s}`, topic, id, headers))
	}
	add("mail", "m1", `{"order":"5"}`)
	add("push", "p1", `{"order":"5","tenant":"x"}`)
	add("mail", "m2", `{"order":"6"}`)
	add("none", "n1", `{"order":"5"}`)
	add("mail", "m3", `{"order":"5","tenant":"x"}`)
	for query, want := range map[string][][]string{
		"?header.order=5":                   {{"m1", "p1", "m3"}},
		"?header.order=5&max=1":             {{"m1"}, {"p1"}, {"m3"}},
		"?header.order=5&topic=mail":        {{"m1", "m3"}},
		"?header.order=5&topic=mail&max=1":  {{"m1"}, {"m3"}},
		"?header.order=5&state=ready":       {{"m1", "p1", "m3"}},
		"?header.order=5&state=dead":        {{}},
		"?header.order=7":                   {{}},
		"?header.order=5&due_to=1970-01-02": nil,
		"?header.tenant=x":                  {{"p1"}},
		"?header.order=5&header.tenant=x":   {{"p1", "m3"}},
		"?header.order=5&header.colour=red": {{}},
		"?header.order=5&id_prefix=n":       {{"n1"}},
	} {
		t.Run(query, func(t *testing.T) {
			if want == nil {
				refused(t, r.do("GET", "/v1/jobs"+query, ""), 400, job.CodeInvalid, "due_to")
				return
			}
			require.Equal(t, want, r.pages("/v1/jobs"+query))
		})
	}
	cursor := decoded(t, r.do("GET", "/v1/jobs?header.order=5&max=1", ""))["next"].(string)
	for query, says := range map[string]string{
		"?header.colour=red":                           `header.colour is not indexed by any topic; name "colour" in the setting index_headers`,
		"?header.order=5&topic=none":                   `header.order is not indexed by topic "none"; name "order" in its setting index_headers`,
		"?header.tenant=x&topic=mail":                  `header.tenant is not indexed by topic "mail"`,
		"?header.order=":                               "header.order is empty; jobs are found by values of at least 1 byte",
		"?header.=5":                                   "a name in headers is missing or empty",
		"?header.tenant=x&cursor=" + cursor:            "cursor belongs to another query",
		"?id_prefix=m&cursor=" + cursor:                "cursor belongs to another query",
		"?header.order=6&cursor=" + cursor:             "cursor belongs to another query",
		"?header.order=5&state=ready&cursor=" + cursor: "cursor belongs to another query",
		"?header.order=5&topic=mail&cursor=" + cursor:  "cursor belongs to another query",
		"?header.order=5&header.x=y&cursor=" + cursor:  "cursor belongs to another query",
		"?header.order=5&topic=":                       `"topic" is empty`,
	} {
		t.Run(query, func(t *testing.T) {
			refused(t, r.do("GET", "/v1/jobs"+query, ""), 400, job.CodeInvalid, says)
		})
	}
}

// indexing is a queue whose header index is being built.
type indexing struct{ Queue }

func (q indexing) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	a, err := q.Queue.Read(ctx, r, stale)
	if a.GetJobs() != nil {
		a.Jobs.Incomplete = true
	}
	return a, err
}

func TestAnIncompleteIndexIsShown(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Queue = indexing{o.Queue} })
	r.index("mail", `["order"]`)
	require.Equal(t, true, decoded(t, r.do("GET", "/v1/jobs?header.order=5", ""))["incomplete"])
}

// emptyMark is a cursor of the jobs of topic t at no place.
func emptyMark(t *testing.T) string {
	cursor, err := cursorOf(&jobpb.JobQuery{Topic: "t"}, &jobpb.JobMark{})
	require.NoError(t, err)
	return cursor
}

func TestACursorGoesWithItsQueryHoweverItIsSplit(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "b", "c"} {
		r.ok("/v1/jobs", `{"topic":"t","id":"`+id+`","body":1}`)
	}
	next := func(path string) string {
		w := r.do("GET", path, "")
		require.Equal(t, 200, w.Code, w.Body)
		next, _ := decoded(t, w)["next"].(string)
		return next
	}
	cursor := next("/v1/topics/t/jobs?max=1&state=ready&due_from=2020-01-01T00:00:00Z")
	// The same filters, in other words.
	cursor = next("/v1/topics/t/jobs?due_from=1577836800000&state=ready&max=1&body=true&consistency=stale&cursor=" + cursor)
	require.NotEmpty(t, cursor)
	require.Empty(t, next("/v1/topics/t/jobs?due_from=2020-01-01T01:00:00%2B01:00&state=ready&cursor="+cursor))
}
