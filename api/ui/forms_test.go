package ui

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// What JSON cannot have is an error of the form, not a defect of the server.
func TestFormThatIsNoJSONIsRefused(t *testing.T) {
	r := newRig(t)
	r.fill()
	for address, form := range map[string][]string{
		"/ui/topic/pause":           {"topic", "orders", "for", "NaN"},
		"/ui/topic/resume":          {"topic", "\xff"},
		"/ui/dead/kick":             {"group", "topic=mail&reason=smtp", "rate", "Inf", "confirmed", "1"},
		"/ui/topic/purge":           {"topic", "orders", "state", "delayed", "id_prefix", "\xff", "confirmed", "1"},
		"/ui/topic/move":            {"topic", "orders", "state", "delayed", "to", "\xff", "confirmed", "1"},
		"/ui/jobs/delete":           {"id", "\xff", "confirmed", "1"},
		"/ui/upcoming/spread":       {"topic", "orders", "from", "2031-01-01T00:00:00Z", "step", "3600", "spread", "NaN"},
		"/ui/topic/settings/change": {"topic", "orders", "revision", "0", "push.url", "http://hooks.example.com/\xff"},
		"/ui/job/change":            {"id", "o2", "revision", "1", "priority", "1024", "body", "\xff"},
	} {
		w := r.post(address, form...)
		require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", address, w.Body)
	}
	require.Len(t, r.delayed(), 2)
}

func TestSlowFormsDoNotKeepPagesFromBeingShown(t *testing.T) {
	r := newRig(t)
	r.fill()
	r.open(Root)
	for range maxRequests {
		r.dashboard.forms <- struct{}{}
	}
	r.open(Root)
	require.Equal(t, http.StatusServiceUnavailable, r.post("/ui/topic/pause", "topic", "orders").Code)
	for range maxRequests {
		<-r.dashboard.forms
	}
	require.Equal(t, http.StatusSeeOther, r.post("/ui/topic/pause", "topic", "orders").Code)
}

func TestErrorSaysHowMuchWasDone(t *testing.T) {
	r := newRig(t)
	r.fill()
	back := []string{"back", "/ui/topic?topic=orders&state=delayed", "confirmed", "1"}
	said := func(address string, form ...string) string {
		return mainText(t, parsed(t, r.post(address, append(form, back...)...)))
	}
	require.Contains(t, said("/ui/jobs/delete", "id", "o2", "id", "gone"), "This was done only in part. 1 job of 2 deleted")
	require.Contains(t, said("/ui/jobs/delete", "id", "o2", "id", "gone"), "This was not done.")
	require.Contains(t, said(movePath, "id", "o1", "id", "gone", "to", "later"), "This was done only in part. 1 job of 2 moved")
	require.Contains(t, said(movePath, "id", "gone", "to", "later"), "This was not done. job")

	r.queue.FailNext(job.Unknown("the node is gone"))
	require.Contains(t, said("/ui/jobs/delete", "id", "..", "id", "gone"), "It is not known whether this was done.")
	require.True(t, (&failure{Code: "internal"}).Unknown(), "the API says so in its message alone")
}

// Jobs that came after the confirmation page was made are not changed.
func TestNoMoreJobsAreChangedThanWereConfirmed(t *testing.T) {
	for _, c := range []struct {
		path  string
		form  []string
		asked string
		says  string
	}{
		{"/ui/topic/purge", []string{"topic", "orders", "state", "delayed"}, "Delete 2 delayed jobs?", "2 jobs deleted. There are more: repeat it."},
		{"/ui/topic/purge", []string{"topic", "orders", "state", "delayed", "id_prefix", "o"}, "Delete 1 delayed jobs that match?", "1 job deleted. There are more: repeat it."},
		{"/ui/topic/move", []string{"topic", "orders", "state", "delayed", "to", "later"}, "Move 2 delayed jobs?", "2 jobs moved. There are more: repeat it."},
		{"/ui/topic/move", []string{"topic", "orders", "state", "delayed", "to", "later", "id_prefix", "o"}, "Move 1 delayed jobs that match?", "1 job moved. There are more: repeat it."},
		{"/ui/dead/purge", []string{"group", "reason=smtp: 550"}, "Delete 1 dead job?", "1 job deleted. There are more: repeat it."},
		{"/ui/dead/kick", []string{"group", "topic=mail&reason=smtp: 550"}, "Kick 1 dead job?", "1 job kicked. There are more: repeat it."},
	} {
		t.Run(c.asked, func(t *testing.T) {
			r := newRig(t)
			r.fill()
			page := parsed(t, r.post(c.path, c.form...))
			require.Contains(t, mainText(t, page), c.asked)
			form := []string{"confirmed", "1"}
			for _, input := range all(page, "input") {
				if attribute(input, "type") == "hidden" && attribute(input, "name") != tokenField {
					form = append(form, attribute(input, "name"), attribute(input, "value"))
				}
			}
			r.add(`{"topic":"orders","id":"o-late","delay":9999,"body":1}`)
			r.die("m-late", "smtp: 550")
			w := r.post(c.path, form...)
			require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
			require.Contains(t, mainText(t, r.open(Root)), c.says)
		})
	}
}

// die adds a job to the topic mail and buries it.
func (r *rig) die(id, reason string) {
	r.t.Helper()
	r.add(`{"topic":"mail","id":"` + id + `","body":1}`)
	var reserved struct {
		Jobs []struct {
			Token string `json:"token"`
		} `json:"jobs"`
	}
	f := caller{api: r.handler, of: formOf("/", nil)}.call(r.t.Context(), http.MethodPost, "/v1/reserve", map[string]any{"topics": []string{"mail"}}, &reserved)
	require.Nil(r.t, f)
	require.Len(r.t, reserved.Jobs, 1)
	r.api(http.MethodPost, "/v1/jobs/"+id+"/bury", `{"token":"`+reserved.Jobs[0].Token+`","reason":"`+reason+`"}`)
}
