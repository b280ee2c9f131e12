package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitsAreSetReadAndTakenAway(t *testing.T) {
	r := newRig(t)
	want := map[string]any{"max_reserved": 5.0, "rate": 0.125, "burst": 3.0}
	require.Equal(t, want, r.settings("PUT", "", `{"max_reserved":5,"rate":0.125,"burst":3}`)["settings"])
	require.Equal(t, want, r.settings("GET", "", "")["settings"])
	require.Equal(t, map[string]any{"rate": 1000000.0}, r.settings("PATCH", "", `{"max_reserved":null,"rate":1e6,"burst":null}`)["settings"])
	require.Equal(t, map[string]any{}, r.settings("PATCH", "", `{"rate":null}`)["settings"])
}

func TestReservesAreHeldBackByTheLimits(t *testing.T) {
	r := newRig(t)
	r.settings("PUT", "", `{"max_reserved":2}`)
	r.ok("/v1/jobs/batch", `{"jobs":[{"topic":"mail","body":1},{"topic":"mail","body":2},{"topic":"mail","body":3},{"topic":"mail","body":4}]}`)
	require.Len(t, r.ok("/v1/reserve", `{"topics":["mail"],"max":4}`)["jobs"], 2)
	r.settings("PUT", "", `{"rate":0.001,"burst":1}`)
	require.NotContains(t, decoded(t, r.do("GET", "/v1/topics/mail", "")), "throttled_until")
	require.Len(t, r.ok("/v1/reserve", `{"topics":["mail"],"max":4}`)["jobs"], 1)
	until, err := time.Parse(time.RFC3339, decoded(t, r.do("GET", "/v1/topics/mail", ""))["throttled_until"].(string))
	require.NoError(t, err)
	require.Greater(t, time.Until(until), 900*time.Second, "a thousand seconds for each job")
}
