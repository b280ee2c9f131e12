package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// bury adds jobs and buries them with a reason.
func (r *rig) bury(topic, reason string, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":%q,"id":%q,"body":1}`, topic, id))
		r.ok("/v1/reserve", fmt.Sprintf(`{"topics":[%q]}`, topic))
		r.ok("/v1/jobs/"+id+"/bury", fmt.Sprintf(`{"reason":%q}`, reason))
	}
}

func TestDeadJobsAreGroupedByReason(t *testing.T) {
	r := newRig(t)
	r.bury("mail", "refused", "m1", "m2", "m3")
	r.bury("mail", "", "m4")
	r.bury("work", "refused", "w1")

	get := func(path string) map[string]any {
		t.Helper()
		a := r.forecast(path)
		for _, g := range a["groups"].([]any) {
			delete(g.(map[string]any), "first_died_at")
		}
		return a
	}
	require.Equal(t, map[string]any{
		"success": true, "jobs": 5.0, "reasons": 2.0, "groups": []any{
			map[string]any{"reason": "refused", "jobs": 4.0, "topics": 2.0, "example": "m1"},
			map[string]any{"reason": "", "jobs": 1.0, "topics": 1.0, "example": "m4"},
		},
	}, get("/v1/dead"))
	require.Equal(t, map[string]any{
		"success": true, "topic": "mail", "jobs": 4.0, "more": true, "groups": []any{
			map[string]any{"reason": "refused", "jobs": 3.0, "example": "m1"},
		},
	}, get("/v1/topics/mail/dead?max=1&consistency=stale"))
	require.Equal(t, map[string]any{"success": true, "topic": "none", "jobs": 0.0, "groups": []any{}}, get("/v1/topics/none/dead"))
	require.Equal(t, map[string]any{
		"success": true, "reason": "refused", "jobs": 4.0, "topics": 2.0, "groups": []any{
			map[string]any{"topic": "mail", "jobs": 3.0, "example": "m1"},
			map[string]any{"topic": "work", "jobs": 1.0, "example": "w1"},
		},
	}, get("/v1/dead/topics?exact_reason=refused"))
	require.Equal(t, true, get("/v1/dead/topics?exact_reason=refused&max=1")["more"])
	require.Equal(t, 1.0, get("/v1/dead/topics?exact_reason=")["jobs"])
	died := r.forecast("/v1/topics/mail/dead")["groups"].([]any)[0].(map[string]any)["first_died_at"]
	require.Equal(t, r.forecast("/v1/jobs/m1")["died_at"], died)
}

func TestJobsAreListedByTheirExactReason(t *testing.T) {
	r := newRig(t)
	r.bury("mail", "refused", "m1", "m2")
	r.bury("mail", "refused again", "m3")
	r.bury("mail", "", "m4")
	ids := func(query string) (ids []string) {
		for _, j := range r.forecast("/v1/topics/mail/jobs?" + query)["jobs"].([]any) {
			ids = append(ids, j.(map[string]any)["id"].(string))
		}
		return ids
	}
	require.Equal(t, []string{"m1", "m2"}, ids("state=dead&exact_reason=refused"))
	require.Equal(t, []string{"m1", "m2", "m3"}, ids("reason=refused"))
	require.Equal(t, []string{"m4"}, ids("exact_reason="))
	require.Empty(t, ids("exact_reason=other"))
}

func TestTheDeadJobsOfAReasonAreKickedInAllTopics(t *testing.T) {
	r := newRig(t)
	r.bury("mail", "refused", "m1", "m2")
	r.bury("work", "refused", "w1")
	r.bury("work", "other", "w2")
	require.Equal(t, 1.0, r.ok("/v1/dead/kick", `{"exact_reason":"refused","max":1}`)["kicked"])
	require.Equal(t, map[string]any{"success": true, "kicked": 2.0}, r.ok("/v1/dead/kick", `{"exact_reason":"refused","all":true}`))
	require.Equal(t, 0.0, r.ok("/v1/dead/kick", `{"exact_reason":"refused","all":true}`)["kicked"])
	require.Equal(t, "dead", r.forecast("/v1/jobs/w2")["state"])
	require.Equal(t, "ready", r.forecast("/v1/jobs/w1")["state"])
	require.Equal(t, 1.0, r.ok("/v1/dead/kick", `{"exact_reason":"other","all":true,"to_topic":"else"}`)["kicked"])
	require.Equal(t, "else", r.forecast("/v1/jobs/w2")["topic"])
}

// The rate is that of all topics together: the third job is due two intervals after the first.
func TestARateHoldsForAllTopicsTogether(t *testing.T) {
	r := newRig(t)
	r.bury("mail", "refused", "m1", "m2")
	r.bury("work", "refused", "w1")
	require.Equal(t, 3.0, r.ok("/v1/dead/kick", `{"exact_reason":"refused","all":true,"rate":0.01}`)["kicked"])
	delay := func(id string) float64 {
		return r.forecast("/v1/jobs/" + id)["delay"].(float64)
	}
	require.Zero(t, delay("m1"))
	require.InDelta(t, 100, delay("m2"), 10)
	require.InDelta(t, 200, delay("w1"), 10)
}

func TestTheDeadJobsOfAReasonAreDeletedInAllTopics(t *testing.T) {
	r := newRig(t)
	r.bury("mail", "refused", "m1", "m2")
	r.bury("work", "refused", "w1")
	r.bury("work", "", "w2")
	require.Equal(t, map[string]any{"success": true, "deleted": 2.0, "more": true}, r.ok("/v1/dead/purge", `{"exact_reason":"refused","max":2}`))
	require.Equal(t, map[string]any{"success": true, "deleted": 1.0}, r.ok("/v1/dead/purge", `{"exact_reason":"refused","all":true}`))
	require.Equal(t, 1.0, r.forecast("/v1/dead")["jobs"])
	require.Equal(t, 1.0, r.ok("/v1/dead/purge", `{"exact_reason":"","all":true}`)["deleted"])
}

func TestBadCallsOnDeadJobsAreRefused(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("x", 201)
	for path, says := range map[string]string{
		"/v1/dead?max=0":                          "max",
		"/v1/topics/t/dead?max=1001":              "max",
		"/v1/dead/topics":                         "exact_reason is missing",
		"/v1/dead/topics?exact_reason=%ff":        "exact_reason is not valid UTF-8",
		"/v1/dead/topics?exact_reason=" + long:    "exact_reason has 201 bytes",
		"/v1/topics/t/jobs?exact_reason=" + long:  "exact_reason has 201 bytes",
		"/v1/dead?topic=t":                        "topic",
		"/v1/dead?consistency=maybe":              "consistency",
		"/v1/dead/topics?exact_reason=x&max=many": "max",
		"/v1/topics/t/jobs?state=dead&exact_reason=a&exact_reason=b&cursor=x": "",
	} {
		refused(t, r.do("GET", path, ""), http.StatusBadRequest, job.CodeInvalid, says)
	}
	for body, says := range map[string]string{
		`{"all":true}`:                                "exact_reason is missing",
		`{"exact_reason":"x"}`:                        "max is missing",
		`{"exact_reason":"x","all":true,"max":1}`:     "max",
		`{"exact_reason":"x","max":10001}`:            "max",
		`{"exact_reason":"` + long + `","all":true}`:  "exact_reason has 201 bytes",
		`{"exact_reason":"x","all":true,"filter":{}}`: "filter",
	} {
		for _, verb := range []string{"kick", "purge"} {
			refused(t, r.do("POST", "/v1/dead/"+verb, body), http.StatusBadRequest, job.CodeInvalid, says)
		}
	}
	refused(t, r.do("POST", "/v1/dead/kick", `{"exact_reason":"x","all":true,"rate":0}`), http.StatusBadRequest, job.CodeInvalid, "rate")
	refused(t, r.do("POST", "/v1/dead/kick", `{"exact_reason":"x","all":true,"to_topic":"`+long+`"}`), http.StatusBadRequest, job.CodeInvalid, "to_topic")
}
