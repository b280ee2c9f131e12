package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
)

func (r *rig) settings(method, query, body string) map[string]any {
	r.t.Helper()
	w := r.do(method, "/v1/topics/mail/settings"+query, body)
	require.Equal(r.t, http.StatusOK, w.Code, w.Body)
	return decoded(r.t, w)
}

func TestPutReplacesSettingsAndPatchMergesThem(t *testing.T) {
	r := newRig(t)
	require.Equal(t, map[string]any{"success": true, "topic": "mail", "revision": 0.0, "settings": map[string]any{}}, r.settings("GET", "", ""))
	a := r.settings("PUT", "", `{"max_pending":5}`)
	require.Equal(t, []any{1.0, map[string]any{"max_pending": 5.0}}, []any{a["revision"], a["settings"]})
	require.Equal(t, a, r.settings("PATCH", "", `{}`), "what is not named stays")
	require.Equal(t, a, r.settings("GET", "?consistency=stale", ""))
	require.Equal(t, 1.0, decoded(t, r.do("GET", "/v1/topics/mail", ""))["settings_revision"])

	require.Equal(t, map[string]any{}, r.settings("PATCH", "", `{"max_pending":null}`)["settings"], "null takes it away")
	a = r.settings("PUT", "?if_revision=0", `{"max_pending":0}`)
	require.Equal(t, map[string]any{"max_pending": 0.0}, a["settings"], "0 is a limit")
	require.Equal(t, map[string]any{}, r.settings("PUT", "?if_revision=1", `{}`)["settings"])
	r.settings("PATCH", "", `{"max_pending":7}`)
	require.Equal(t, 0.0, r.settings("DELETE", "", "")["revision"])
	require.NotContains(t, decoded(t, r.do("GET", "/v1/topics/mail", "")), "settings_revision")
}

func TestSettingsAreChangedUnderAConditionOnly(t *testing.T) {
	r := newRig(t)
	r.settings("PUT", "", `{"max_pending":5}`)
	for _, method := range []string{"PUT", "PATCH"} {
		refused(t, r.do(method, "/v1/topics/mail/settings?if_revision=2", `{"max_pending":6}`), http.StatusPreconditionFailed, job.CodeConditionFailed, "revision 1, not 2")
	}
	refused(t, r.do("DELETE", "/v1/topics/mail/settings?if_revision=0", ""), http.StatusPreconditionFailed, job.CodeConditionFailed, "revision 1, not 0")
	require.Equal(t, map[string]any{"max_pending": 6.0}, r.settings("PATCH", "?if_revision=1", `{"max_pending":6}`)["settings"])
}

// meddler changes the settings each time that they were read.
type meddler struct {
	*apitest.Queue
	left int
}

func (m *meddler) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	a, err := m.Queue.Read(ctx, r, stale)
	if m.left--; err == nil && m.left >= 0 {
		op := &jobpb.SetTopic{Topic: r.GetTopic(), Settings: &jobpb.TopicSettings{MaxPending: new(uint64(1000 + m.left))}}
		_, err = m.Do(ctx, []*jobpb.Op{{Kind: &jobpb.Op_SetTopic{SetTopic: op}}})
	}
	return a, err
}

func TestAPatchIsTriedAgainWhenOthersChangeTheSettings(t *testing.T) {
	m := &meddler{Queue: apitest.New(t), left: patchTries - 1}
	r := newRig(t, func(o *Options) { o.Queue = m })
	require.Equal(t, map[string]any{"max_pending": 5.0}, r.settings("PATCH", "", `{"max_pending":5}`)["settings"])
	m.left = patchTries
	w := r.do("PATCH", "/v1/topics/mail/settings", `{"max_pending":5}`)
	refused(t, w, http.StatusServiceUnavailable, job.CodeNotApplied, "changed by others")
}

func TestDefaultsOfATopic(t *testing.T) {
	r := newRig(t)
	a := r.settings("PUT", "", `{"ttr":1.5,"max_attempts":0,"backoff":{"base":2}}`)
	require.Equal(t, map[string]any{
		"ttr": 1.5, "max_attempts": 0.0, "backoff": map[string]any{"base": 2.0, "factor": 2.0, "max": 3600.0},
	}, a["settings"])
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1}`)
	r.ok("/v1/jobs", `{"topic":"mail","id":"b","body":1,"ttr":60,"max_attempts":5}`)
	r.settings("PATCH", "", `{"ttr":null,"backoff":[7]}`)
	r.ok("/v1/jobs", `{"topic":"mail","id":"c","body":1}`)
	require.Equal(t, true, r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1}`)["existing"])
	for id, want := range map[string][]any{"a": {1.5, 0.0}, "b": {60.0, 5.0}, "c": {60.0, 0.0}} {
		j := decoded(t, r.do("GET", "/v1/jobs/"+id, ""))
		require.Equal(t, want, []any{j["ttr"], j["max_attempts"]}, id)
	}
	r.ok("/v1/reserve", `{"topics":["mail"]}`)
	require.Equal(t, "delayed", r.ok("/v1/jobs/a/release", `{}`)["state"])
	require.Equal(t, map[string]any{}, r.settings("PATCH", "", `{"max_attempts":null,"backoff":null}`)["settings"])
}

func TestTheAnswerHasTheInstantThatSpreadMadeOfIt(t *testing.T) {
	r := newRig(t)
	require.Equal(t, map[string]any{"spread": 3600.0}, r.settings("PUT", "", `{"spread":3600}`)["settings"])
	a := r.ok("/v1/jobs", `{"topic":"mail","id":"a","due_at":"2040-01-01T00:00:00Z","body":1}`)
	require.Regexp(t, `^2040-01-01T00:[0-5]\d`, a["due_at"])
	require.NotEqual(t, "2040-01-01T00:00:00.000Z", a["due_at"])
	again := r.ok("/v1/jobs", `{"topic":"mail","id":"a","due_at":"2040-01-01T00:00:00Z","body":1}`)
	require.Equal(t, []any{true, a["due_at"]}, []any{again["existing"], again["due_at"]})
	require.Equal(t, map[string]any{}, r.settings("PATCH", "", `{"spread":0}`)["settings"])
}

func TestExpiryOfATopic(t *testing.T) {
	r := newRig(t)
	require.Equal(t, map[string]any{"expire": 0.001, "expiry": "drop"}, r.settings("PUT", "", `{"expire":0.001}`)["settings"])
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1}`)
	require.Eventually(t, func() bool { return r.do("GET", "/v1/jobs/a", "").Code == http.StatusNotFound }, soon, time.Millisecond)
	require.Equal(t, 1.0, decoded(t, r.do("GET", "/v1/topics/mail", ""))["expired"])

	require.Equal(t, "dead", r.settings("PATCH", "", `{"expiry":"dead"}`)["settings"].(map[string]any)["expiry"])
	r.ok("/v1/jobs", `{"topic":"mail","id":"b","due_at":"2040-01-01T00:00:00Z","body":1}`)
	require.Equal(t, "2040-01-01T00:00:00.001Z", decoded(t, r.do("GET", "/v1/jobs/b", ""))["expires_at"])
	r.ok("/v1/jobs/b/kick", "")
	require.Eventually(t, func() bool { return decoded(t, r.do("GET", "/v1/jobs/b", ""))["reason"] == "expired" }, soon, time.Millisecond)
	require.Equal(t, map[string]any{"expiry": "dead"}, r.settings("PATCH", "", `{"expire":null}`)["settings"])
	require.Equal(t, map[string]any{}, r.settings("PATCH", "", `{"expiry":"drop"}`)["settings"], "the default needs no setting")
}

// Without a time of the topic, the setting is for jobs that have one of their own.
func TestExpiryWithoutATimeIsForJobsWithTheirOwn(t *testing.T) {
	r := newRig(t)
	require.Equal(t, map[string]any{"expiry": "dead"}, r.settings("PUT", "", `{"expiry":"dead"}`)["settings"])
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1,"expires_at":"`+time.Now().Add(50*time.Millisecond).Format(time.RFC3339Nano)+`"}`)
	r.ok("/v1/jobs", `{"topic":"mail","id":"b","body":1}`)
	require.Eventually(t, func() bool { return decoded(t, r.do("GET", "/v1/jobs/a", ""))["reason"] == "expired" }, soon, time.Millisecond)
	require.Equal(t, "ready", decoded(t, r.do("GET", "/v1/jobs/b", ""))["state"])
}

func TestSettingsOfAnInvalidTopicOrRevisionAreRefused(t *testing.T) {
	r := newRig(t)
	refused(t, r.do("PUT", "/v1/topics/mail/settings?if_revision=x", `{}`), http.StatusBadRequest, job.CodeInvalid, "if_revision")
	refused(t, r.do("PUT", "/v1/topics/%01/settings", `{}`), http.StatusBadRequest, job.CodeInvalid, "topic")
}

func TestAllTopicsWithSettingsAreListed(t *testing.T) {
	r := newRig(t)
	for _, topic := range []string{"c", "a", "b"} {
		require.Equal(t, http.StatusOK, r.do("PUT", "/v1/topics/"+topic+"/settings", `{"max_pending":5}`).Code)
	}
	r.ok("/v1/jobs", `{"topic":"without","body":1}`)
	page := decoded(t, r.do("GET", "/v1/topic-settings?max=2", ""))
	require.Len(t, page["topics"], 2)
	require.Equal(t, "b", page["next"])
	page = decoded(t, r.do("GET", "/v1/topic-settings?max=2&after=b", ""))
	require.Equal(t, []any{map[string]any{"topic": "c", "revision": 1.0, "settings": map[string]any{"max_pending": 5.0}}}, page["topics"])
	require.NotContains(t, page, "next")
}

func TestAFullTopicIsToldWithALaterTry(t *testing.T) {
	r := newRig(t)
	r.settings("PUT", "", `{"max_pending":1}`)
	a := r.ok("/v1/jobs/batch", `{"jobs":[{"topic":"mail","body":1},{"topic":"mail","body":2},{"topic":"sms","body":3}]}`)
	results := a["results"].([]any)
	require.Equal(t, []any{true, false, true}, []any{results[0].(map[string]any)["success"], results[1].(map[string]any)["success"], results[2].(map[string]any)["success"]})
	require.Equal(t, "topic_full", results[1].(map[string]any)["code"])
	w := r.post("/v1/jobs", `{"topic":"mail","body":2}`)
	refused(t, w, http.StatusTooManyRequests, job.CodeTopicFull, "max_pending, is 1")
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, "not_applied", decoded(t, w)["outcome"])
}

func TestWhoMayEndAReservation(t *testing.T) {
	r := newRig(t)
	a := r.settings("PUT", "", `{"late_finish":"refuse","require_token":true}`)
	require.Equal(t, map[string]any{"late_finish": "refuse", "require_token": true}, a["settings"])
	r.ok("/v1/jobs", `{"topic":"mail","id":"a","body":1}`)
	r.ok("/v1/reserve", `{"topics":["mail"]}`)
	for path, body := range map[string]string{
		"/v1/jobs/a/finish": `{}`, "/v1/jobs/a/release": `{}`, "/v1/jobs/a/touch": `{}`, "/v1/jobs/a/bury": `{}`,
		"/": `{"command":"finish","id":"a"}`,
	} {
		refused(t, r.post(path, body), http.StatusConflict, job.CodeTokenRequired, "token is missing")
	}
	require.Contains(t, r.post("/v1/finish", `{"jobs":[{"id":"a"}]}`).Body.String(), `"code":"token_required"`)
	r.ok("/v1/jobs/a/finish", `{"token":"0-1-1"}`)

	require.Equal(t, map[string]any{"late_finish": "refuse"}, r.settings("PATCH", "", `{"require_token":null}`)["settings"])
	require.Equal(t, map[string]any{}, r.settings("PATCH", "", `{"late_finish":"accept"}`)["settings"], "as without it")
	refused(t, r.do("PATCH", "/v1/topics/mail/settings", `{"late_finish":"maybe"}`), http.StatusBadRequest, job.CodeInvalid, "late_finish")
}
