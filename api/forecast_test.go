package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// forecast returns the response to a GET.
func (r *rig) forecast(path string) map[string]any {
	r.t.Helper()
	w := r.do("GET", path, "")
	require.Equal(r.t, http.StatusOK, w.Code, w.Body.String())
	return decoded(r.t, w)
}

func TestAForecastCountsJobsByStep(t *testing.T) {
	r := newRig(t)
	start := time.Now().Add(10 * time.Hour).UTC().Truncate(time.Hour)
	add := func(topic string, after time.Duration) {
		r.ok("/v1/jobs", fmt.Sprintf(`{"topic":%q,"body":1,"due_at":%q}`, topic, start.Add(after).Format(time.RFC3339Nano)))
	}
	add("mail", -time.Hour)
	for _, after := range []time.Duration{0, 59 * time.Second, 60 * time.Second, 179999 * time.Millisecond, 180 * time.Second} {
		add("mail", after)
	}
	add("work", time.Minute)

	steps := func(jobs ...float64) []any {
		list := make([]any, len(jobs))
		for i, n := range jobs {
			list[i] = n
		}
		return list
	}
	query := "?step=60&steps=3&start=" + start.Add(30*time.Second).Format(time.RFC3339)
	begins := start.Format("2006-01-02T15:04:05.000Z")
	require.Equal(t, map[string]any{
		"success": true, "topic": "mail", "start": begins, "step": 60.0, "jobs": steps(2, 1, 1), "before": 1.0, "after": 1.0, "overdue": 0.0,
	}, r.forecast("/v1/topics/mail/forecast"+query))
	require.Equal(t, map[string]any{
		"success": true, "start": begins, "step": 60.0, "jobs": steps(2, 2, 1), "before": 1.0, "after": 1.0, "overdue": 0.0,
	}, r.forecast("/v1/forecast"+query+"&consistency=stale"))
	require.Equal(t, steps(6, 0), r.forecast("/v1/forecast?step=604800&steps=2&start=" + fmt.Sprint(start.UnixMilli()))["jobs"])
	require.Equal(t, steps(0), r.forecast("/v1/topics/none/forecast?steps=1")["jobs"])

	require.Equal(t, map[string]any{
		"success": true, "start": begins, "step": 120.0, "jobs": 4.0,
		"topics": []any{map[string]any{"topic": "mail", "jobs": 3.0}, map[string]any{"topic": "work", "jobs": 1.0}},
	}, r.forecast("/v1/forecast/topics?step=120&start="+start.Format(time.RFC3339)))
	require.Len(t, r.forecast("/v1/forecast/topics?max=1&step=86400&start=" + start.Format(time.RFC3339))["topics"], 1)
}

// Without a start the first step is the present one, as hours and days begin in UTC.
func TestAForecastStartsWithThePresentStep(t *testing.T) {
	r := newRig(t)
	for step, length := range map[string]time.Duration{"": time.Hour, "&step=60": time.Minute, "&step=900": 15 * time.Minute, "&step=86400": 24 * time.Hour,
		"&step=minute": time.Minute, "&step=hour": time.Hour, "&step=day": 24 * time.Hour} {
		before := time.Now().UTC().Truncate(length)
		a := r.forecast("/v1/forecast?steps=1" + step)
		start, err := time.Parse(time.RFC3339, a["start"].(string))
		require.NoError(t, err)
		require.Contains(t, []time.Time{before, before.Add(length)}, start, "it may be the next one by now")
		require.Equal(t, length.Seconds(), a["step"])
	}
	require.Len(t, r.forecast("/v1/forecast")["jobs"], 24)
	require.Len(t, r.forecast("/v1/forecast?step=60&steps=1440")["jobs"], 1440)
	require.Len(t, r.forecast("/v1/forecast?step=86400&steps=400")["jobs"], 400)
}

func TestBadForecastsAreRefused(t *testing.T) {
	r := newRig(t)
	for query, says := range map[string]string{
		"step=0":                     "step is 0 s; it must be a multiple of 60 s",
		"step=-60":                   "step is -60 s",
		"step=90":                    "step is 90 s; it must be a multiple of 60 s",
		"step=60.5":                  "step is 60.5 s",
		"step=1e300":                 "at most 3.456e+07 s",
		"step=week":                  `step is "week"; it takes minute, hour, day or a number of seconds`,
		"step=Hour":                  `step is "Hour"; it takes`,
		"step=":                      "step",
		"steps=0":                    "steps",
		"steps=1501":                 "steps",
		"step=86400&steps=401":       "steps must not cover more than 400 days together",
		"start=tomorrow":             `start is "tomorrow"`,
		"start=1":                    "start is 1; a number is of milliseconds since 1970",
		"start=2100-01-01T00:00Z":    "start",
		"start=9000-01-01T00:00:00Z": "start is 9000",
		"consistency=old":            "consistency",
		"from=1":                     "from",
	} {
		for _, path := range []string{"/v1/forecast?", "/v1/topics/t/forecast?"} {
			refused(t, r.do("GET", path+query, ""), http.StatusBadRequest, job.CodeInvalid, says)
		}
		if !strings.HasPrefix(query, "steps") && !strings.Contains(query, "&") {
			refused(t, r.do("GET", "/v1/forecast/topics?"+query, ""), http.StatusBadRequest, job.CodeInvalid, says)
		}
	}
	refused(t, r.do("GET", "/v1/forecast/topics?step=2678460", ""), http.StatusBadRequest, job.CodeInvalid, "step must be whole minutes, up to 31 days")
	refused(t, r.do("GET", "/v1/forecast/topics?max=1001", ""), http.StatusBadRequest, job.CodeInvalid, "max")
}
