package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// result returns one of the results of a batch.
func result(a map[string]any, i int) map[string]any {
	return a["results"].([]any)[i].(map[string]any)
}

func TestJobsAreShownInTheOrderOfTheirIDs(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs/batch", `{"jobs":[{"topic":"t","id":"a","body":"A"},{"topic":"u","id":"b","body":{"n": 1}},{"topic":"t","delay":9,"body_base64":"/wD+"}]}`)
	a := r.ok("/v1/get", `{"ids":["b","nobody","$0-3","a","b"]}`)
	require.Equal(t, []string{"", "not_found", "", "", ""}, outcomesOf(t, a))
	require.Equal(t, false, a["success"])
	var ids []string
	for i := range 5 {
		id, _ := result(a, i)["id"].(string)
		ids = append(ids, id)
	}
	require.Equal(t, []string{"b", "", "$0-3", "a", "b"}, ids)
	require.Equal(t, map[string]any{"n": 1.0}, result(a, 0)["body"])
	require.Equal(t, "/wD+", result(a, 2)["body_base64"])

	// An item is what GET of one job gives.
	require.Equal(t, decoded(t, r.do("GET", "/v1/jobs/a", "")), result(a, 3))
	a = r.ok("/v1/get?consistency=stale&body=false", `{"ids":["a"]}`)
	require.Equal(t, true, a["success"])
	require.NotContains(t, result(a, 0), "body")
}

func TestAListOfIDsIsChecked(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		query, body string
		code        job.Code
		says        string
	}{
		{"", ``, job.CodeBadJSON, "empty"},
		{"", `{}`, job.CodeInvalid, "ids has 0 items; it takes 1 to 1000"},
		{"", `{"ids":[]}`, job.CodeInvalid, "ids has 0 items"},
		{"", `{"ids":["a"],"body":false}`, job.CodeInvalid, "body is not a field"},
		{"", `{"ids":[1]}`, job.CodeInvalid, "ids[0] must be a string"},
		{"", `{"ids":"a"}`, job.CodeInvalid, "ids must be a list"},
		{"", `{"ids":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, job.CodeInvalid, "1000 items"},
		{"?body=1", `{"ids":["a"]}`, job.CodeInvalid, "body"},
		{"?consistency=maybe", `{"ids":["a"]}`, job.CodeInvalid, "consistency"},
		{"?max=1", `{"ids":["a"]}`, job.CodeInvalid, "max"},
	} {
		t.Run(c.query+c.body[:min(len(c.body), 40)], func(t *testing.T) {
			refused(t, r.post("/v1/get"+c.query, c.body), 400, c.code, c.says)
		})
	}
	// An id that cannot be one fails alone.
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":1}`)
	a := r.ok("/v1/get", fmt.Sprintf(`{"ids":["","a",%q]}`, strings.Repeat("x", 201)))
	require.Equal(t, []string{"invalid_argument", "", "invalid_argument"}, outcomesOf(t, a))
	require.Equal(t, "ids[2]", result(a, 2)["field"])
	require.Contains(t, result(a, 2)["error"], "ids[2] has 201 bytes")
	require.Equal(t, []string{"invalid_argument"}, outcomesOf(t, r.ok("/v1/get", `{"ids":[""]}`)))
}

func TestAFullReplyNamesTheJobsToAskForAgain(t *testing.T) {
	r := newRig(t)
	var ids []string
	for i := range 6 {
		ids = append(ids, fmt.Sprintf(`"%d"`, i))
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":"t","id":"%d","body":"%s"}`, i, strings.Repeat("x", 1<<20)))
	}
	a := r.ok("/v1/get", `{"ids":[`+strings.Join(ids, ",")+`,"nobody",""]}`)
	require.Equal(t, []string{"", "", "", "", "reply_full", "reply_full", "reply_full", "invalid_argument"}, outcomesOf(t, a))
	require.Contains(t, result(a, 4)["error"], "ask for it again")
	require.Equal(t, []string{"", "", "", "", "", ""}, outcomesOf(t, r.ok("/v1/get?body=false", `{"ids":[`+strings.Join(ids, ",")+`]}`)))
}

func TestAListOfIDsCountsAsBytesInUse(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBufferedBytes = 40_000 })
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":"`+strings.Repeat("x", 8_000)+`"}`)
	require.Equal(t, []string{""}, outcomesOf(t, r.ok("/v1/get", `{"ids":["a"]}`)))
	refused(t, r.post("/v1/get", `{"ids":["a","a","a"]}`), 429, job.CodeOverloaded, "40000")
}

func TestAFailedReadOfAListOfIDsIsNotDone(t *testing.T) {
	r := newRig(t)
	r.queue.FailNext(job.Unknown("lost"))
	refused(t, r.post("/v1/get", `{"ids":["a"]}`), 503, job.CodeNotApplied, "could not be read")
}
