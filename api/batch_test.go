package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// outcomesOf lists the code of each result, "" for success.
func outcomesOf(t *testing.T, a map[string]any) []string {
	t.Helper()
	var list []string
	for _, r := range a["results"].([]any) {
		code, _ := r.(map[string]any)["code"].(string)
		require.Equal(t, code == "", r.(map[string]any)["success"])
		list = append(list, code)
	}
	return list
}

func TestABadItemDoesNotStopTheOthers(t *testing.T) {
	r := newRig(t)
	a := r.ok("/v1/jobs/batch", `{"jobs":[
		{"topic":"t","id":"a","body":1},
		{"topic":"","body":1},
		{"topic":"t","id":"a","body":2},
		null,
		{"topic":"t","id":"a","body":1},
		{"topic":"t","id":"b","body":1,"ttr":0},
		{"topic":"t","id":"c","body":1}
	]}`)
	require.Equal(t, []string{"", "invalid_argument", "id_conflict", "invalid_argument", "", "invalid_argument", ""}, outcomesOf(t, a))
	require.Equal(t, false, a["success"])
	require.Equal(t, "jobs[5]: ttr is 0 s; it must be between 0.001 and 315360000 s", a["results"].([]any)[5].(map[string]any)["error"])
	require.Equal(t, true, a["results"].([]any)[4].(map[string]any)["existing"])
	require.Equal(t, 404, r.do("GET", "/v1/jobs/b", "").Code, "nothing of a bad item is written")
	require.Equal(t, 200, r.do("GET", "/v1/jobs/c", "").Code)
}

func TestABatchOfBadItemsDoesNotReachTheQueue(t *testing.T) {
	r := newRig(t)
	r.queue.FailNext(job.NotApplied("asked"))
	require.Equal(t, []string{"invalid_argument"}, outcomesOf(t, r.ok("/v1/jobs/batch", `{"jobs":[{}]}`)))
}

func TestABatchFailsAsAWhole(t *testing.T) {
	r := newRig(t)
	r.queue.FailNext(job.Unknown("lost"))
	refused(t, r.post("/v1/jobs/batch", `{"jobs":[{"topic":"t","body":1},{}]}`), 504, job.CodeUnknown, "lost")
}

func TestTheLargestBatch(t *testing.T) {
	r := newRig(t)
	items := strings.TrimSuffix(strings.Repeat(`{"topic":"t","body":1},`, job.MaxBatch), ",")
	require.Len(t, outcomesOf(t, r.ok("/v1/jobs/batch", `{"jobs":[`+items+`]}`)), job.MaxBatch)
	require.Len(t, r.ok("/v1/reserve", `{"topics":["t"],"max":1000}`)["jobs"], 1000)
}

func TestStepsInBatches(t *testing.T) {
	for verb, fields := range map[string]string{
		"finish": "", "release": `,"delay":5,"priority":3,"reason":"r"`, "touch": `,"ttr":5`, "bury": `,"priority":3,"reason":"r"`,
	} {
		t.Run(verb, func(t *testing.T) {
			r := newRig(t)
			r.ok("/v1/jobs/batch", `{"jobs":[{"topic":"t","id":"a","body":1},{"topic":"t","id":"b","body":1},{"topic":"u","id":"c","body":1}]}`)
			r.ok("/v1/reserve", `{"topics":["t"],"max":10}`)
			a := r.ok("/v1/"+verb, fmt.Sprintf(`{"jobs":[{"id":"a"%[1]s},{"token":"0-2-1"%[1]s},{"id":"c"},{"id":"b","token":"0-1-1"},{},{"token":"x"},{"id":"d"},{"token":"1-1-1"}]}`, fields))
			require.Equal(t, []string{"", "", "not_reserved", "not_found", "invalid_argument", "invalid_argument", "not_found", "stale_token"}, outcomesOf(t, a))
		})
	}
	r := newRig(t)
	a := r.ok("/v1/finish", `{"jobs":[{"id":"a","ttr":1}]}`)
	require.Equal(t, []string{"invalid_argument"}, outcomesOf(t, a))
}

func TestJobsAreChangedByLists(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"a", "b"} {
		r.ok("/v1/jobs", `{"topic":"t","id":"`+id+`","delay":60,"body":1}`)
	}
	for _, c := range []struct{ path, jobs, says string }{
		{"/v1/update", `{"id":"a","priority":3},{"id":"b","delay":-1},{"priority":3},{"id":"nobody","priority":3}`,
			`^true delayed, jobs\[1\].delay, jobs\[2\].id, not_found$`},
		{"/v1/update", `{"id":"a"},{"id":"b","body":2,"if_state":["ready"]}`, `^jobs\[0\], condition_failed$`},
		{"/v1/kick", `{"id":"a"},{"id":"b","token":"0-1-1"}`, `^true ready, jobs\[1\].token$`},
		{"/v1/delete", `{"id":"a"},{"id":"b"},{"id":"a"}`, `^true gone, true gone, not_found$`},
	} {
		var says []string
		for _, one := range decoded(t, r.post(c.path, `{"jobs":[`+c.jobs+`]}`))["results"].([]any) {
			one := one.(map[string]any)
			switch {
			case one["success"] == true:
				says = append(says, "true "+one["state"].(string))
			case one["field"] != nil:
				says = append(says, one["field"].(string))
			case one["code"] == "invalid_argument":
				says = append(says, one["error"].(string))
			default:
				says = append(says, one["code"].(string))
			}
		}
		require.Regexp(t, c.says, strings.Join(says, ", "), c.path)
	}
}

func TestTheKeyOfAnAddIsItsID(t *testing.T) {
	r := newRig(t)
	add := func(key, body string) map[string]any {
		q := httptest.NewRequest("POST", "/v1/jobs", strings.NewReader(body))
		q.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		return decoded(t, w)
	}
	require.Equal(t, "k", add("k", `{"topic":"t","body":1}`)["id"])
	require.Equal(t, true, add("k", `{"topic":"t","body":1}`)["existing"])
	require.Equal(t, "a", add("k", `{"topic":"t","id":"a","body":1}`)["id"], "an id of its own counts")
	require.Equal(t, "Idempotency-Key", add("$0-1", `{"topic":"t","body":1}`)["field"])
}
