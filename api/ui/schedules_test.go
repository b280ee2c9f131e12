package ui

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScheduleIsRunPausedResumedAndDeleted(t *testing.T) {
	r := newRig(t)
	r.fill()
	require.Contains(t, mainText(t, r.open(schedulesPath)), "Europe/Berlin")
	require.NotContains(t, mainText(t, r.open(schedulesPath)), "started")
	at := "/ui/schedule?schedule=nightly"
	w := r.post("/ui/schedule/run", "schedule", "nightly", "back", at)
	require.Equal(t, at, w.Header().Get("Location"))
	require.Contains(t, mainText(t, r.open(at)), "by hand")
	require.Regexp(t, `started (now|\d+ m?s ago)`, mainText(t, r.open(schedulesPath)), "the list has the last run")
	r.post("/ui/schedule/pause", "schedule", "nightly")
	require.Contains(t, mainText(t, r.open(at)), "paused")
	r.post("/ui/schedule/resume", "schedule", "nightly")
	require.Contains(t, mainText(t, r.open(at)), "Next runs")
	require.Contains(t, mainText(t, parsed(t, r.post("/ui/schedule/delete", "schedule", "nightly"))), "Delete schedule nightly?")
	r.post("/ui/schedule/delete", "schedule", "nightly", confirmedField, "1")
	require.Equal(t, http.StatusNotFound, r.get(at).Code)
}

func TestPreviewShowsRunsOrWhatIsWrong(t *testing.T) {
	r := newRig(t)
	require.Contains(t, mainText(t, r.open("/ui/schedules?spec=0+6+*+*+*&zone=Europe/Berlin")), "T06:00:00+0")
	text := mainText(t, r.open("/ui/schedules?spec=0+25+*+*+*"))
	require.Contains(t, text, "spec")
	require.Contains(t, text, "25")
}

func TestAJobOfAScheduleLeadsToIt(t *testing.T) {
	r := newRig(t)
	r.fill()
	r.add(`{"topic":"orders","id":"nightly@2026-11-23T02:30:00Z","body":0}`)
	r.add(`{"topic":"orders","id":"ann@example.com","body":0}`)
	r.add(`{"topic":"orders","id":"@","body":0}`)
	require.Contains(t, mainText(t, r.open("/ui/job?id=nightly@2026-11-23T02:30:00Z")), "a run of the schedule nightly")
	require.NotContains(t, mainText(t, r.open("/ui/job?id=ann@example.com")), "schedule")
	require.NotContains(t, mainText(t, r.open("/ui/job?id=@")), "a run of")
}
