package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestUpdatesThatAreRefused(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","delay":60,"body":1}`)
	for body, says := range map[string]string{
		`{}`:                                   "the request changes nothing",
		`{"if_revision":1}`:                    "the request changes nothing",
		`{"delay":1,"due_at":1}`:               "both given",
		`{"delay":-1}`:                         "delay is -1",
		`{"due_at":"soon"}`:                    "RFC 3339",
		`{"ttr":0}`:                            "ttr",
		`{"priority":-1}`:                      "priority is -1",
		`{"max_attempts":-1}`:                  "max_attempts is -1",
		`{"body":1,"body_base64":""}`:          "both given",
		`{"backoff":{"base":0}}`:               "neither delays nor base",
		`{"backoff":{"delays":[],"jitter":1}}`: "neither delays nor base",
		`{"headers":{"":"x"}}`:                 "headers is missing or empty",
		`{"delay":1,"if_revision":0}`:          "start with 1",
		`{"delay":1,"if_revision":-1}`:         "if_revision is -1",
		`{"delay":1,"if_state":[]}`:            "if_state is empty",
		`{"delay":1,"if_state":["waiting"]}`:   `"waiting"`,
	} {
		refused(t, r.do("PATCH", "/v1/jobs/a", body), 400, job.CodeInvalid, says)
	}
	refused(t, r.do("PATCH", "/v1/jobs/a", `{"topic":"u"}`), 400, job.CodeInvalid, "topic is not a field")
	refused(t, r.do("PATCH", "/v1/jobs/b", `{"delay":1}`), 404, job.CodeNotFound, "does not exist")
	refused(t, r.do("DELETE", "/v1/jobs/a?if_revision=x", ""), 400, job.CodeInvalid, "whole number")
	refused(t, r.do("DELETE", "/v1/jobs/a?if_state=ready,", ""), 400, job.CodeInvalid, "if_state")
}

func TestAnUpdateChangesWhatItNames(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","delay":60,"priority":7,"body":"old"}`)
	made := decoded(t, r.do("PATCH", "/v1/jobs/a", `{"due_at":100000000000,"ttr":5,"max_attempts":2,"body":{"n":1}}`))
	require.Equal(t, []any{"ready", 2.0}, []any{made["state"], made["revision"]})
	j := decoded(t, r.do("GET", "/v1/jobs/a", ""))
	require.Equal(t, []any{7.0, 5.0, 2.0, map[string]any{"n": 1.0}}, []any{j["priority"], j["ttr"], j["max_attempts"], j["body"]})
	decoded(t, r.do("PATCH", "/v1/jobs/a", `{"body":""}`))
	require.Equal(t, "", decoded(t, r.do("GET", "/v1/jobs/a", ""))["body"], "an empty body is one")
}

func TestConditionsHoldOffWhoeverIsLate(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","delay":60,"body":1}`)
	refused(t, r.do("PATCH", "/v1/jobs/a?if_revision=2", `{"delay":1}`), 412, job.CodeConditionFailed, "delayed with revision 1")
	refused(t, r.do("PATCH", "/v1/jobs/a?if_revision=1", `{"delay":1,"if_revision":1}`), 400, job.CodeInvalid, "if_revision and if_state are given in the query and")
	refused(t, r.do("PATCH", "/v1/jobs/a", `{"delay":1,"if_revision":2}`), 412, job.CodeConditionFailed, "delayed with revision 1")
	refused(t, r.do("DELETE", "/v1/jobs/a?if_state=ready", ""), 412, job.CodeConditionFailed, "delayed")
	refused(t, r.post("/v1/jobs", `{"topic":"t","id":"a","body":2,"if_exists":"replace","if_state":["dead"]}`), 412, job.CodeConditionFailed, "delayed")
	require.Equal(t, 200, r.do("PATCH", "/v1/jobs/a", `{"delay":0,"if_revision":1}`).Code)
	r.ok("/v1/reserve", `{"topics":["t"]}`)
	refused(t, r.do("DELETE", "/v1/jobs/a?if_state=delayed,ready", ""), 412, job.CodeConditionFailed, "reserved")
	refused(t, r.do("PATCH", "/v1/jobs/a", `{"delay":1}`), 409, job.CodeAlreadyReserved, "reservation ends")
	require.Equal(t, 200, r.do("DELETE", "/v1/jobs/a?if_state=reserved&if_revision=3", "").Code)
}

func TestAnAddOfATakenID(t *testing.T) {
	for what, c := range map[string]struct {
		status int
		flag   string
		body   any
		state  jobpb.State
	}{
		"keep":     {200, "existing", "old", jobpb.State_STATE_DELAYED},
		"postpone": {200, "postponed", "old", jobpb.State_STATE_READY},
		"replace":  {201, "replaced", "new", jobpb.State_STATE_READY},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.ok("/v1/jobs", `{"topic":"t","id":"a","delay":60,"body":"old"}`)
			w := r.post("/v1/jobs", `{"topic":"t","id":"a","body":"new","if_exists":"`+what+`"}`)
			require.Equal(t, c.status, w.Code, w.Body.String())
			require.Equal(t, true, decoded(t, w)[c.flag])
			j := decoded(t, r.do("GET", "/v1/jobs/a", ""))
			require.Equal(t, []any{c.body, stateNames[c.state]}, []any{j["body"], j["state"]})
		})
	}
}

func TestAnUpdateOfBackoffAndHeaders(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","id":"a","body":"kept","headers":{"x":"1","y":"2"}}`)
	decoded(t, r.do("PATCH", "/v1/jobs/a", `{"backoff":30}`))
	j := decoded(t, r.do("GET", "/v1/jobs/a", ""))
	require.Equal(t, map[string]any{"delays": []any{30.0}}, j["backoff"])
	require.Equal(t, map[string]any{"x": "1", "y": "2"}, j["headers"], "not named, so kept")
	decoded(t, r.do("PATCH", "/v1/jobs/a", `{"headers":{"z":"3"}}`))
	j = decoded(t, r.do("GET", "/v1/jobs/a", ""))
	require.Equal(t, map[string]any{"z": "3"}, j["headers"])
	require.Equal(t, map[string]any{"delays": []any{30.0}}, j["backoff"])
	decoded(t, r.do("PATCH", "/v1/jobs/a", `{"headers":{},"backoff":[]}`))
	j = decoded(t, r.do("GET", "/v1/jobs/a", ""))
	require.NotContains(t, j, "headers")
	require.NotContains(t, j, "backoff")
	require.Equal(t, []any{"kept", 4.0}, []any{j["body"], j["revision"]})
	reserved := r.ok("/v1/reserve", `{"topics":["t"]}`)
	require.Contains(t, fmt.Sprint(reserved), "kept")
}
