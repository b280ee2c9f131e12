package api

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestJobsOfATopicThatMatchMove(t *testing.T) {
	for body, want := range map[string]struct {
		moved float64
		more  any
		there []string
	}{
		`"all":true,"filter":{"id_prefix":"a"}`:                                     {3, nil, []string{"a3", "a1", "a2"}},
		`"all":true,"filter":{"id_prefix":"a"},"states":["dead"]`:                   {2, nil, []string{"a1", "a2"}},
		`"all":true,"filter":{"reason":"route"},"states":["dead"]`:                  {2, nil, []string{"a1", "b1"}},
		`"all":true,"filter":{"exact_reason":"too big"}`:                            {1, nil, []string{"a2"}},
		`"all":true,"filter":{"headers":{"tenant":"a"}}`:                            {2, nil, []string{"a1", "a2"}},
		`"all":true,"filter":{"due_from":"2030-01-01T00:00:00Z"}`:                   {1, nil, []string{"later"}},
		`"all":true,"filter":{"due_to":1893456000000},"states":["delayed","ready"]`: {1, nil, []string{"a3"}},
		`"max":1,"filter":{"id_prefix":"a"}`:                                        {1, true, []string{"a1"}},
		`"max":2,"states":["dead","ready"]`:                                         {2, true, []string{"a3", "a1"}},
		`"max":3,"states":["dead"]`:                                                 {3, nil, []string{"a1", "b1", "a2"}},
		`"max":9`:                                                                   {5, nil, []string{"later", "a3", "a1", "b1", "a2"}},
		`"all":true,"filter":{}`:                                                    {5, nil, []string{"later", "a3", "a1", "b1", "a2"}},
		`"all":true`:                                                                {5, nil, []string{"later", "a3", "a1", "b1", "a2"}},
		`"all":true,"filter":{"id_prefix":"zz"}`:                                    {0, nil, []string{}},
	} {
		t.Run(body, func(t *testing.T) {
			r := newRig(t)
			r.dead("t", "no route", "a1", "b1")
			r.dead("t", "too big", "a2")
			r.ok("/v1/jobs", `{"topic":"t","id":"later","body":1,"due_at":"2050-01-01T00:00:00Z"}`)
			r.ok("/v1/jobs", `{"topic":"t","id":"a3","body":1}`)
			answer := r.ok("/v1/topics/t/move", `{"to":"u",`+body+`}`)
			require.Equal(t, []any{want.moved, want.more}, []any{answer["moved"], answer["more"]})
			require.Equal(t, [][]string{want.there}, r.pages("/v1/topics/u/jobs?"))
		})
	}
}

// A reserved job keeps its reservation, and a job that cannot be in the target stays and is
// told of. A call goes on behind it.
func TestAMoveOfJobsThatMatchInParts(t *testing.T) {
	r := pushRig(t)
	r.settings(http.MethodPut, "", `{"push":{"url":"https://hooks.example.com/t","job_urls":true,"secret":"0123456789abcdef"}}`)
	for i := range 4 {
		url := ""
		if i == 1 {
			url = `,"push_url":"` + jobURL + `"`
		}
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":"mail","id":"a%d","body":1,"delay":%d%s}`, i, 60+i, url))
	}
	const move = `{"to":"u","max":2,"filter":{"id_prefix":"a"},"states":["delayed"]`
	first := r.ok("/v1/topics/mail/move", move+`}`)
	require.Equal(t, []any{2.0, 1.0, true}, []any{first["moved"], first["skipped"], first["more"]})
	require.Contains(t, first["reason"], "push_url is not permitted")
	second := r.ok("/v1/topics/mail/move", fmt.Sprintf(`%s,"cursor":%q}`, move, first["next"]))
	require.Equal(t, []any{1.0, nil, nil}, []any{second["moved"], second["skipped"], second["more"]})
	require.Equal(t, [][]string{{"a1"}}, r.pages("/v1/topics/mail/jobs?"))
	refused(t, r.post("/v1/topics/mail/move", fmt.Sprintf(`{"to":"u","all":true,"cursor":%q}`, first["next"])), http.StatusBadRequest, job.CodeInvalid, "belongs to another query")

	r = newRig(t)
	r.ok("/v1/jobs", `{"topic":"w","id":"held","body":1}`)
	token := r.ok("/v1/reserve", `{"topics":["w"]}`)["jobs"].([]any)[0].(map[string]any)["token"]
	require.Equal(t, 1.0, r.ok("/v1/topics/w/move", `{"to":"u","all":true,"filter":{"id_prefix":"held"}}`)["moved"])
	require.Equal(t, "ready", r.ok("/v1/jobs/held/release", fmt.Sprintf(`{"token":%q,"delay":0}`, token))["state"])
}

// A call ends before a step that certainly was not done. After a step of unknown outcome nobody
// can say how many have moved.
func TestAMoveOfJobsThatMatchThatFailsOnTheWay(t *testing.T) {
	r := newRig(t)
	jobs := ""
	for i := range sweepStep {
		jobs += fmt.Sprintf(`,{"topic":"t","id":"a%d","body":1}`, i)
	}
	r.ok("/v1/jobs/batch", `{"jobs":[`+jobs[1:]+`]}`)
	r.ok("/v1/jobs", `{"topic":"t","id":"az","body":1}`)
	const move = `{"to":"u","all":true,"filter":{"id_prefix":"a"}`
	// Each page is a read and a command.
	r.queue.FailNext(nil, job.NotApplied("no leader"))
	refused(t, r.post("/v1/topics/t/move", move+`}`), http.StatusServiceUnavailable, job.CodeNotApplied, "no leader")
	r.queue.FailNext(nil, nil, nil, job.NotApplied("no leader"))
	first := r.ok("/v1/topics/t/move", move+`}`)
	require.Equal(t, []any{1000.0, true}, []any{first["moved"], first["more"]})
	require.Equal(t, 1.0, r.ok("/v1/topics/t/move", fmt.Sprintf(`%s,"cursor":%q}`, move, first["next"]))["moved"])
	r.queue.FailNext(nil, nil, nil, job.Unknown("lost"))
	refused(t, r.post("/v1/topics/u/move", `{"to":"t","all":true,"filter":{"id_prefix":"a"}}`), http.StatusGatewayTimeout, job.CodeUnknown, "the first 1000 jobs were done; then: lost")
}
