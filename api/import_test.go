package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestAJobIsImportedWithWhatHadHappenedToIt(t *testing.T) {
	r := newRig(t)
	const jobs = `{"jobs":[
		{"topic":"t","id":"dead","state":"dead","due_at":"2020-01-01T00:00:00Z","created_at":"2019-01-01T00:00:00Z","died_at":"2020-01-02T00:00:00Z","attempts":3,"max_attempts":3,
		 "reserves":5,"timeouts":1,"releases":2,"buries":1,"kicks":1,"reason":"broken","last_error":"no route","delay":9,"priority":7,"ttr":5,"headers":{"a":"b"},"body":{"n":1}},
		{"topic":"t","id":"late","state":"delayed","due_at":"2020-01-01T00:00:00Z","body":"x"}]}`
	require.Equal(t, []string{"", ""}, outcomesOf(t, r.ok("/v1/import", jobs)))
	got := decoded(t, r.do("GET", "/v1/jobs/dead", ""))
	for field, want := range map[string]any{
		"state": "dead", "due_at": "2020-01-01T00:00:00.000Z", "created_at": "2019-01-01T00:00:00.000Z", "died_at": "2020-01-02T00:00:00.000Z", "attempts": 3.0, "max_attempts": 3.0,
		"reserves": 5.0, "timeouts": 1.0, "releases": 2.0, "buries": 1.0, "kicks": 1.0, "reason": "broken", "last_error": "no route", "delay": 9.0, "priority": 7.0, "ttr": 5.0,
	} {
		require.Equal(t, want, got[field], field)
	}
	late := decoded(t, r.do("GET", "/v1/jobs/late", ""))
	require.Equal(t, []any{"ready", "2020-01-01T00:00:00.000Z"}, []any{late["state"], late["due_at"]})
	for _, result := range r.ok("/v1/import", jobs)["results"].([]any) {
		require.Equal(t, true, result.(map[string]any)["existing"])
	}
}

func TestWhatAnImportDoesNotTake(t *testing.T) {
	r := newRig(t)
	for item, says := range map[string]string{
		`"state":"reserved","due_at":"2020-01-01T00:00:00Z"`: "jobs[0]: state is \"reserved\"; it takes delayed, ready and dead",
		`"state":"ready"`: "jobs[0]: due_at is missing",
		`"due_at":"2020-01-01T00:00:00Z","died_at":"2020-01-01T00:00:00Z"`: "jobs[0]: died_at is only for jobs with the state dead",
		`"due_at":"2020-01-01T00:00:00Z","attempts":16`:                    "jobs[0]: attempts is 16 of 16",
		`"due_at":"2020-01-01T00:00:00Z","kicks":-1`:                       "jobs[0]: kicks is -1",
		`"due_at":"2020-01-01T00:00:00Z","created_at":"yesterday"`:         "jobs[0]: created_at is \"yesterday\"",
		`"due_at":"2020-01-01T00:00:00Z","id":"$0-1"`:                      "jobs[0]: id \"$0-1\" starts with",
	} {
		a := r.ok("/v1/import", `{"jobs":[{"topic":"t","body":1,`+item+`}]}`)
		require.Equal(t, []string{"invalid_argument"}, outcomesOf(t, a), item)
		require.Contains(t, a["results"].([]any)[0].(map[string]any)["error"], says)
	}
	refused(t, r.do("POST", "/v1/import", `{"jobs":[{"topic":"t","body":1,"if_exists":"keep"}]}`), 400, job.CodeInvalid, "if_exists is not a field of this call")
}
