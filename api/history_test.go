package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

func TestRetainedJobIsShownAndRecognised(t *testing.T) {
	r := newRig(t)
	r.settings("PUT", "", `{"retain":60}`)
	add := `{"topic":"mail","id":"a","body":"x"}`
	for id, end := range map[string]string{"finished": "finish", "deleted": ""} {
		r.ok("/v1/jobs", `{"topic":"mail","id":"`+id+`","body":"x"}`)
		r.ok("/v1/reserve", `{"topics":["mail"],"consumer":"w"}`)
		if end == "" {
			require.Equal(t, 200, r.do("DELETE", "/v1/jobs/"+id, "").Code)
		} else {
			require.Equal(t, "gone", r.ok("/v1/jobs/"+id+"/"+end, `{}`)["state"])
		}
		got := decoded(t, r.do("GET", "/v1/jobs/"+id, ""))
		require.Equal(t, id, got["state"])
		require.NotEmpty(t, got[id+"_at"])
		require.NotEmpty(t, got["retained_until"])
		require.NotContains(t, got, "reserved_until")
		refused(t, r.post("/v1/jobs/"+id+"/finish", `{}`), 404, job.CodeNotFound, id+" at 20")

		h := decoded(t, r.do("GET", "/v1/jobs/"+id+"/history", ""))
		events := h["events"].([]any)
		require.Len(t, events, 3)
		reserved := events[1].(map[string]any)
		require.Equal(t, "w", reserved["consumer"])
		require.EqualValues(t, 1, reserved["attempt"])
		require.Equal(t, id, events[2].(map[string]any)["event"])
	}
	require.EqualValues(t, 2, decoded(t, r.do("GET", "/v1/topics/mail", ""))["retained"])

	w := r.post("/v1/jobs", `{"topic":"mail","id":"finished","body":"x"}`)
	require.Equal(t, 200, w.Code)
	require.Equal(t, "finished", decoded(t, w)["state"])
	refused(t, r.post("/v1/jobs", `{"topic":"mail","id":"finished","body":"y"}`), 409, job.CodeIDConflict, "another body, which was finished at 20")
	refused(t, r.post("/v1/jobs", `{"topic":"mail","id":"finished","body":"y","if_exists":"replace","if_state":["deleted"]}`), 412, job.CodeConditionFailed, "is finished")
	w = r.post("/v1/jobs", `{"topic":"mail","id":"finished","body":"y","if_exists":"replace","if_state":["finished"]}`)
	require.Equal(t, 201, w.Code)
	require.Equal(t, true, decoded(t, w)["replaced"])
	r.ok("/v1/jobs", add)
}

func TestInvalidRequestsForAHistory(t *testing.T) {
	r := newRig(t)
	refused(t, r.do("GET", "/v1/jobs/nobody/history", ""), 404, job.CodeNotFound, "nobody")
	refused(t, r.do("GET", "/v1/jobs/a/history?max=1", ""), 400, job.CodeInvalid, "max")
	require.Equal(t, map[string]any{}, r.settings("PUT", "", `{"retain":0}`)["settings"])
}

func TestEveryEventHasAName(t *testing.T) {
	for number := range jobpb.Event_Kind_name {
		_, named := eventNames[jobpb.Event_Kind(number)]
		require.Equal(t, number != 0, named, jobpb.Event_Kind_name[number])
	}
}
