package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestASchedulesLife(t *testing.T) {
	r := newRig(t)
	put := `{"spec":"0 0 29 2 *","zone":"Europe/Berlin","overlap":"skip","missed":"all","missed_max":3,"missed_after":2.5,"jitter":1,"job":{"topic":"t","ttr":5,"headers":{"a":"b"},"body":{"run":"{{run}}","at":"{{planned}}"}}}`
	w := r.do("PUT", "/v1/schedules/a%2Fb", put)
	require.Equal(t, 201, w.Code, w.Body.String())
	first := decoded(t, w)
	require.Equal(t, []any{"a/b", false}, []any{first["schedule"], first["existing"]})
	w = r.do("PUT", "/v1/schedules/a%2Fb", put)
	require.Equal(t, 200, w.Code)
	require.Equal(t, []any{true, first["revision"]}, []any{decoded(t, w)["existing"], decoded(t, w)["revision"]})

	got := decoded(t, r.do("GET", "/v1/schedules/a%2Fb", ""))
	for name, want := range map[string]any{
		"schedule": "a/b", "spec": "0 0 29 2 *", "zone": "Europe/Berlin", "overlap": "skip", "missed": "all",
		"missed_max": 3.0, "missed_after": 2.5, "jitter": 1.0, "paused": false,
	} {
		require.Equal(t, want, got[name], name)
	}
	require.Regexp(t, `-02-28T23:00:00.000Z$`, got["next_at"])
	require.Equal(t, map[string]any{"topic": "t", "priority": 1024.0, "ttr": 5.0, "headers": map[string]any{"a": "b"}, "body": map[string]any{"run": "{{run}}", "at": "{{planned}}"}}, got["job"])

	w = r.post("/v1/schedules/a%2Fb/run", "")
	require.Equal(t, 201, w.Code, w.Body.String())
	id := decoded(t, w)["id"].(string)
	require.Regexp(t, `^a/b@\d{4}-.*Z-now1$`, id)
	jobs := r.post("/v1/reserve", `{"topics":["t"]}`).Body.String()
	require.Regexp(t, `"body":\{"run":"1","at":"\d{4}-\d\d-\d\dT[0-9:.]+\+0[12]:00"\}`, jobs)
	runs := r.do("GET", "/v1/schedules/a%2Fb/runs", "").Body.String()
	require.Contains(t, runs, `"outcome":"started","now":true,"id":"`+id)

	w = r.post("/v1/schedules/a%2Fb/pause", "")
	require.Equal(t, true, decoded(t, w)["paused"])
	got = decoded(t, r.do("GET", "/v1/schedules/a%2Fb", ""))
	require.Equal(t, true, got["paused"])
	require.NotContains(t, got, "next_at")
	require.Equal(t, 201, r.post("/v1/schedules/a%2Fb/run", `{"key":"k"}`).Code, "a paused one can be run by hand")
	w = r.post("/v1/schedules/a%2Fb/run", `{"key":"k"}`)
	require.Equal(t, []any{200, "a/b@now-k", true}, []any{w.Code, decoded(t, w)["id"], decoded(t, w)["existing"]})
	refused(t, r.post("/v1/schedules/a%2Fb/run", `{"key":"`+strings.Repeat("k", 41)+`"}`), 400, job.CodeInvalid, "key has 41 bytes; the limit is 40")
	refused(t, r.post("/v1/schedules/a%2Fb/run", `{"key":""}`), 400, job.CodeInvalid, "key")
	r.ok("/v1/schedules/a%2Fb/resume", "{}")
	require.Contains(t, decoded(t, r.do("GET", "/v1/schedules/a%2Fb", "")), "next_at")

	refused(t, r.do("PUT", "/v1/schedules/a%2Fb", strings.Replace(put, `{"spec`, `{"if_revision":1,"spec`, 1)), 412, job.CodeConditionFailed, "revision")
	refused(t, r.do("DELETE", "/v1/schedules/a%2Fb?if_revision=1", ""), 412, job.CodeConditionFailed, "revision")
	require.Equal(t, 200, r.do("DELETE", "/v1/schedules/a%2Fb", "").Code)
	for _, path := range []string{"", "/runs", "/preview"} {
		refused(t, r.do("GET", "/v1/schedules/a%2Fb"+path, ""), 404, job.CodeNotFound, "a/b")
	}
	for _, verb := range []string{"run", "pause", "resume"} {
		refused(t, r.post("/v1/schedules/a%2Fb/"+verb, ""), 404, job.CodeNotFound, "a/b")
	}
	refused(t, r.do("DELETE", "/v1/schedules/a%2Fb", ""), 404, job.CodeNotFound, "a/b")
}

// Paused and changed at once; a put that says nothing of it leaves it paused.
func TestAPutLeavesAScheduleAsPausedAsItIs(t *testing.T) {
	r := newRig(t)
	put := func(more string) { r.putOK(`{` + more + `"spec":"@hourly","job":{"topic":"t","body":""}}`) }
	put("")
	r.ok("/v1/schedules/s/pause", "")
	put(`"jitter":1,`)
	require.Equal(t, true, decoded(t, r.do("GET", "/v1/schedules/s", ""))["paused"])
	put(`"paused":false,`)
	require.Equal(t, false, decoded(t, r.do("GET", "/v1/schedules/s", ""))["paused"])
}

// A put has its condition in the query, or as of old in the request; neither is overlooked.
func TestAPutTakesTheRevisionFromTheQuery(t *testing.T) {
	r := newRig(t)
	w := r.do("PUT", "/v1/schedules/a?if_revision=7", `{"spec":"@daily","job":{"topic":"t","body":""}}`)
	refused(t, w, 404, job.CodeNotFound, "a")
	refused(t, r.do("GET", "/v1/schedules/a", ""), 404, job.CodeNotFound, "a")
	w = r.do("PUT", "/v1/schedules/a?if_revision=7", `{"spec":"@daily","if_revision":7,"job":{"topic":"t","body":""}}`)
	refused(t, w, 400, job.CodeInvalid, "if_revision is given in the query and in the request")
	require.Equal(t, 201, r.do("PUT", "/v1/schedules/a", `{"spec":"@daily","job":{"topic":"t","body":""}}`).Code)
	for _, query := range []string{"?max=2", "?count=2"} {
		require.Len(t, decoded(t, r.do("GET", "/v1/schedules/a/preview"+query, ""))["runs"], 2, query)
	}
	refused(t, r.do("GET", "/v1/schedules/a/preview?max=2&count=2", ""), 400, job.CodeInvalid, "count and max are both given")
	for _, query := range []string{"?cursor=a", "?after=a"} {
		require.Empty(t, decoded(t, r.do("GET", "/v1/schedules"+query, ""))["schedules"], query)
	}
}

func TestPreviewsKeepTheLimitsOfASchedule(t *testing.T) {
	r := newRig(t)
	for body, says := range map[string]string{
		`{"spec":"` + strings.Repeat("1,", 150) + `1 * * * *"}`: "spec has 309 bytes; it takes 1 to 200",
		`{"spec":""}`: "spec has 0 bytes",
		`{"spec":"@daily","zone":"` + strings.Repeat("a", 201) + `"}`:                   "zone has 201 bytes",
		`{"spec":"@daily","start":"2030-01-02T00:00:00Z","end":"2030-01-01T00:00:00Z"}`: "end lies before start",
		`{"spec":"@daily","after":"2090-01-01T00:00:00Z"}`:                              "after is 2090-01-01T00:00:00Z; it must be at most 1000000000 s ahead",
		`{"spec":"@daly"}`: `spec is "@daly"; the names are @yearly`,
	} {
		refused(t, r.post("/v1/schedules/preview", body), 400, job.CodeInvalid, says)
	}
}

func (r *rig) putOK(body string) {
	r.t.Helper()
	w := r.do("PUT", "/v1/schedules/s", body)
	require.Less(r.t, w.Code, 300, w.Body.String())
}

func TestSchedulesThatAreRefused(t *testing.T) {
	fine := `"job":{"topic":"t","body":""}`
	for _, c := range []struct {
		body string
		code job.Code
		says string
	}{
		{`{` + fine + `}`, job.CodeInvalid, "spec is missing"},
		{`{"spec":"* * * *",` + fine + `}`, job.CodeInvalid, "spec is \"* * * *\" with 4 fields"},
		{`{"spec":"0 25 * * *",` + fine + `}`, job.CodeInvalid, `spec has "25" for the hour, at byte 3`},
		{`{"spec":"0 0 31 2 *",` + fine + `}`, job.CodeInvalid, "never comes due"},
		{`{"spec":"@daily","end":"2001-01-01T00:00:00Z",` + fine + `}`, job.CodeInvalid, "end is 2001-01-01"},
		{`{"spec":"@daily","start":"2031-01-01T00:00:00Z","end":"2030-01-01T00:00:00Z",` + fine + `}`, job.CodeInvalid, "end lies before start"},
		{`{"spec":"@daily","start":"tomorrow",` + fine + `}`, job.CodeInvalid, "start is"},
		{`{"spec":"@daily","zone":"Mars/Base",` + fine + `}`, job.CodeInvalid, "zone is \"Mars/Base\""},
		{`{"spec":"@daily","zone":"",` + fine + `}`, job.CodeInvalid, "zone"},
		{`{"spec":"@daily","jitter":-1,` + fine + `}`, job.CodeInvalid, "jitter is -1 s"},
		{`{"spec":"@daily","overlap":"maybe",` + fine + `}`, job.CodeInvalid, "overlap is \"maybe\"; it takes one of: allow, skip"},
		{`{"spec":"@daily","missed":"some",` + fine + `}`, job.CodeInvalid, "missed is \"some\""},
		{`{"spec":"@daily","missed_max":3,` + fine + `}`, job.CodeInvalid, "missed_max goes with"},
		{`{"spec":"@daily","missed":"all","missed_max":1001,` + fine + `}`, job.CodeInvalid, "missed_max is 1001; it must be between 1 and 1000"},
		{`{"spec":"@daily","missed_after":0,` + fine + `}`, job.CodeInvalid, "missed_after is 0 s"},
		{`{"spec":"@daily","if_revision":0,` + fine + `}`, job.CodeInvalid, "if_revision is 0"},
		{`{"spec":"@daily"}`, job.CodeInvalid, "job is missing"},
		{`{"spec":"@daily","job":{"body":""}}`, job.CodeInvalid, "job.topic is missing"},
		{`{"spec":"@daily","job":{"topic":"t"}}`, job.CodeInvalid, "job.body is missing"},
		{`{"spec":"@daily","job":{"topic":"t","body":"","delay":3}}`, job.CodeInvalid, "job.delay is not a field"},
		{`{"spec":"@daily","job":{"topic":"t","body":"","id":"x"}}`, job.CodeInvalid, "job.id is not a field"},
		{`{"spec":"@daily","job":{"topic":"t","body":"","dely":3}}`, job.CodeInvalid, "job.dely is not a field"},
		{`{"spec":"@daily","cron":"x",` + fine + `}`, job.CodeInvalid, "cron is not a field"},
		{`{"spec":7,` + fine + `}`, job.CodeInvalid, "spec must be a string"},
		{`{"spec":"@daily","job":{"topic":"t","body":"` + strings.Repeat("x", job.MaxScheduleBodyBytes+1) + `"}}`, job.CodeTooLarge, "job.body has 65537 bytes"},
	} {
		r := newRig(t)
		status := 400
		if c.code == job.CodeTooLarge {
			status = 413
		}
		refused(t, r.do("PUT", "/v1/schedules/s", c.body), status, c.code, c.says)
		require.Empty(t, r.queue.Ops(), "nothing is written")
	}
	r := newRig(t)
	for path, says := range map[string]string{
		"/v1/schedules/$s": "starts with", `/v1/schedules/a"b`: "quotes", "/v1/schedules/" + strings.Repeat("x", 161): "161 bytes; the limit is 150",
	} {
		refused(t, r.do("PUT", path, `{"spec":"@daily",`+fine+`}`), 400, job.CodeInvalid, says)
	}
	r.putOK(`{"spec":"@daily",` + fine + `}`)
	for path, says := range map[string]string{
		"/v1/schedules/s/preview?count=101": "count is 101", "/v1/schedules/s/preview?count=x": "count is", "/v1/schedules?max=0": "max is 0",
		"/v1/schedules?after=%01": "after",
	} {
		refused(t, r.do("GET", path, ""), 400, job.CodeInvalid, says)
	}
	refused(t, r.post("/v1/schedules/preview", `{"spec":"@daily","zone":"x"}`), 400, job.CodeInvalid, "zone")
	refused(t, r.post("/v1/schedules/preview", `{"spec":"@daily","count":0}`), 400, job.CodeInvalid, "count is 0")
	refused(t, r.post("/v1/schedules/preview", `{"spec":"@daily","job":1}`), 400, job.CodeInvalid, "job is not a field")
}

func TestPagesOfSchedules(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		require.Equal(t, 201, r.do("PUT", fmt.Sprintf("/v1/schedules/s%d", i), `{"spec":"@daily","job":{"topic":"t","body":""}}`).Code)
	}
	var names []string
	for after, pages := "", 0; ; pages++ {
		require.Less(t, pages, 4)
		page := decoded(t, r.do("GET", "/v1/schedules?max=2&after="+after, ""))
		for _, s := range page["schedules"].([]any) {
			names = append(names, s.(map[string]any)["schedule"].(string))
		}
		next, more := page["next"].(string)
		if !more {
			break
		}
		after = next
	}
	require.Equal(t, []string{"s0", "s1", "s2", "s3", "s4"}, names)
}

func TestRunsAreStartedByThemselves(t *testing.T) {
	r := newRig(t)
	r.putOK(`{"spec":"@every 1s","start":` + fmt.Sprint(time.Now().Add(-1500*time.Millisecond).UnixMilli()) + `,"job":{"topic":"t","body":"{{name}} {{run}}"}}`)
	w := r.post("/v1/reserve", `{"topics":["t"],"wait":10}`)
	require.Contains(t, w.Body.String(), `"id":"s@`)
	require.Contains(t, w.Body.String(), `"body":"s 1"`)
}
