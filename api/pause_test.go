package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestATopicIsPausedAndResumed(t *testing.T) {
	r := newRig(t)
	r.ok("/v1/jobs", `{"topic":"t","body":1}`)
	shown := func() []any {
		a := decoded(t, r.do("GET", "/v1/topics/t", ""))
		return []any{a["paused"], a["paused_until"]}
	}
	ready := func() int { return len(r.ok("/v1/reserve", `{"topics":["t"],"ttr":0.001}`)["jobs"].([]any)) }
	require.Equal(t, []any{false, nil}, shown())

	require.Equal(t, map[string]any{"success": true, "topic": "t", "paused": true}, r.ok("/v1/topics/t/pause", ""), "until it is resumed")
	require.Equal(t, []any{true, nil}, shown())
	require.Zero(t, ready())

	before := time.Now()
	a := r.ok("/v1/topics/t/pause", `{"for":600}`)
	until, err := time.Parse(time.RFC3339, a["paused_until"].(string))
	require.NoError(t, err)
	require.False(t, until.Before(before.Add(600*time.Second).Truncate(time.Millisecond)))
	require.Zero(t, ready())

	require.Equal(t, "2040-01-01T00:00:00.000Z", r.ok("/v1/topics/t/pause", `{"until":"2040-01-01T01:00:00+01:00"}`)["paused_until"])
	require.Equal(t, []any{true, "2040-01-01T00:00:00.000Z"}, shown())
	r.ok("/v1/topics/t/resume", "")
	require.Equal(t, 1, ready())

	r.ok("/v1/topics/new/pause", `{}`)
	require.Equal(t, true, decoded(t, r.do("GET", "/v1/topics/new", ""))["paused"], "a pause may come before the first job")
	require.Equal(t, map[string]any{"success": true, "topic": "new", "paused": false}, r.ok("/v1/topics/new/resume", `{}`))
	require.Equal(t, false, r.ok("/v1/topics/new/resume", "")["paused"], "once more does no harm")
}

func TestBadPausesAreRefused(t *testing.T) {
	r := newRig(t)
	for body, says := range map[string]string{
		`{"for":0}`:                        "for is 0 s; it must be at least 0.001 s",
		`{"for":-1}`:                       "for is -1 s",
		`{"for":"10m"}`:                    "for must be a number, not a string",
		`{"for":1,"until":"2040-01-01"}`:   "for and until are both given",
		`{"until":"2040-01-01"}`:           "until is \"2040-01-01\"",
		`{"until":"2020-01-01T00:00:00Z"}`: "until is 2020-01-01T00:00:00Z, which is over",
		`{"until":1924992000}`:             "is this one of seconds?",
		`{"until":"9999-01-01T00:00:00Z"}`: "until is 9999-01-01T00:00:00Z; it must be at most",
		`{"seconds":1}`:                    "seconds is not a field",
	} {
		w := r.post("/v1/topics/t/pause", body)
		require.Equal(t, http.StatusBadRequest, w.Code, body)
		a := decoded(t, w)
		require.Contains(t, a["error"], says)
		namesField(t, a)
	}
	refused(t, r.post("/v1/topics/t/resume", `{"for":1}`), http.StatusBadRequest, job.CodeInvalid, "for is not a field of this call, which takes no request body")
	refused(t, r.post("/v1/topics/none/resume", ""), http.StatusNotFound, job.CodeNotFound, "does not exist")
}
