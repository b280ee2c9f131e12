package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

func TestJobIsEdited(t *testing.T) {
	r := newRig(t)
	r.fill()
	at := "/ui/job?id=o2"
	w := r.post("/ui/job/change", "id", "o2", "revision", "1", "due_at", "2031-01-02T03:04:05.000Z", "priority", "7", "body", "two\r\nlines")
	require.Equal(t, at, w.Header().Get("Location"), w.Body)
	text := mainText(t, r.open(at))
	require.Contains(t, text, "The job is changed.")
	require.Contains(t, text, "two lines")
	require.Equal(t, "2031-01-02T03:04:05.000Z", r.valueOf("/ui/job/edit?id=o2", "due_at"))
	require.Equal(t, "7", r.valueOf("/ui/job/edit?id=o2", "priority"))

	w = r.post("/ui/job/change", "id", "o2", "revision", "2", "due_at", "2031-01-02T03:04:05.000Z", "priority", "7", "body", "two\r\nlines")
	require.Equal(t, at, w.Header().Get("Location"))
	require.Contains(t, mainText(t, r.open(at)), "Nothing was changed.")

	w = r.post("/ui/job/change", "id", "o2", "revision", "1", "priority", "8", "back", "/ui/job/edit?id=o2")
	require.Equal(t, http.StatusPreconditionFailed, w.Code, "somebody else has changed it")
	for field, wrong := range map[string]string{"due_at": "tomorrow", "in": "soon", "priority": "high"} {
		form := []string{"id", "o2", "revision", "2", "priority", "7", "back", "/ui/job/edit?id=o2", field, wrong}
		if field == "priority" {
			form = []string{"id", "o2", "revision", "2", "back", "/ui/job/edit?id=o2", field, wrong}
		}
		w = r.post("/ui/job/change", form...)
		require.Equal(t, http.StatusBadRequest, w.Code, field)
		require.Contains(t, w.Body.String(), `value="`+wrong+`"`, "what was written is not lost")
		require.Contains(t, w.Body.String(), `aria-invalid="true"`)
	}
	r.post("/ui/job/change", "id", "o2", "revision", "2", "priority", "7", "in", "0s")
	require.Contains(t, mainText(t, r.open(at)), "ready")
}

// JSON stays JSON, text stays text: a consumer gets what it got before.
func TestEditedBodyKeepsItsKind(t *testing.T) {
	r := newRig(t)
	r.add(`{"topic":"t","id":"json","delay":9,"body":{"a":1}}`)
	r.add(`{"topic":"t","id":"text","delay":9,"body":"{\"a\":1}"}`)
	for id, want := range map[string]string{"json": `{"a":2}`, "text": `"{\"a\":2}"`} {
		r.post("/ui/job/change", "id", id, "revision", "1", "priority", "1024", "body", `{"a":2}`)
		var j client.Job
		require.Nil(t, caller{api: r.handler, of: formOf("/", nil)}.get(t.Context(), "/v1/jobs/"+id, &j))
		require.Equal(t, want, string(j.Body.Value))
	}
}

func TestCurlOfAJobIsOneSafeCommand(t *testing.T) {
	j := &client.Job{ID: "a'b; rm -rf /", Topic: "$(id)", Body: client.Text("it's `x`")}
	for _, command := range curlOf("http://127.0.0.1:7300", j) {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "curl() { printf '%s\\n' \"$#\" \"$@\"; }; "+command).CombinedOutput()
		require.NoError(t, err, command)
		require.True(t, strings.HasPrefix(string(out), "2\n-s\n") || strings.HasPrefix(string(out), "4\n-s\n"), "%s: %s", command, out)
	}
}

func TestCurlOfAJobHasTheSchemeOfThePage(t *testing.T) {
	r := newRig(t)
	r.fill()
	for _, scheme := range []string{"http", "https"} {
		w := r.send(httptest.NewRequest(http.MethodGet, scheme+"://127.0.0.1:7300/ui/job?id=o2", nil))
		require.Contains(t, mainText(t, parsed(t, w)), "curl -s "+scheme+"://127.0.0.1:7300/v1/jobs/o2", scheme)
	}
}

func TestTimelineIsInOrder(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	added := func(due int) client.Event {
		return client.Event{At: at(1), Event: "added", State: "delayed", DueAt: at(due)}
	}
	reserved := func(s int) client.Event { return client.Event{At: at(s), Event: "reserved", State: "reserved"} }
	for _, c := range []struct {
		name    string
		job     client.Job
		history []client.Event
		dropped uint64
		want    string
	}{
		{"waits", client.Job{State: "delayed", DueAt: at(9), ExpiresAt: at(20)}, nil, 0, "1 added, 9 due, 20 expires"},
		{"waits, with a history", client.Job{State: "delayed", DueAt: at(9)}, []client.Event{added(9)}, 0, "1 added, 9 due"},
		{"is dead", client.Job{State: "dead", DueAt: at(1), DiedAt: at(2), Reason: "smtp: 550"}, nil, 0, "1 added, 1 due, 2 dead smtp: 550"},
		{"died before it was due", client.Job{State: "dead", DueAt: at(9), DiedAt: at(2)}, nil, 0, "1 added, 2 dead"},
		{"is finished", client.Job{State: "finished", DueAt: at(2), FinishedAt: at(4), RetainedUntil: at(9)},
			[]client.Event{added(2), reserved(3), {At: at(4), Event: "finished", State: "finished"}}, 0,
			"1 added, 2 due, 3 reserved, 4 finished, 9 removed kept until then"},
		{"is reserved", client.Job{State: "reserved", DueAt: at(2), ReservedUntil: at(9)}, []client.Event{added(2), reserved(3)}, 0,
			"1 added, 2 due, 3 reserved, 9 lease ends"},
		{"comes again", client.Job{State: "ready", DueAt: at(4)},
			[]client.Event{added(1), {At: at(2), Event: "reserved", State: "reserved", Attempt: 1, Consumer: "w1"}, {At: at(3), Event: "released", State: "delayed", DueAt: at(4), Attempt: 1, Reason: "timeout"}}, 0,
			"1 added, 1 due, 2 reserved by w1, attempt 1, 3 released attempt 1: timeout, 4 due"},
		{"was postponed", client.Job{State: "ready", DueAt: at(4)},
			[]client.Event{added(3), {At: at(2), Event: "postponed", State: "delayed", DueAt: at(4)}}, 0, "1 added, 2 postponed, 4 due"},
		{"has a history without its middle", client.Job{State: "reserved", DueAt: at(4), ReservedUntil: at(9)}, []client.Event{added(3), reserved(5)}, 7,
			"1 added, 4 due, 5 reserved, 9 lease ends"},
	} {
		c.job.CreatedAt = at(1)
		var list []string
		for _, m := range timelineOf(&c.job, c.history, c.dropped, at(5)) {
			list = append(list, strings.TrimSpace(fmt.Sprint(m.At.Unix(), " ", m.Event, " ", m.Text)))
			require.Equal(t, m.At.After(at(5)), m.Future, c.name)
		}
		require.Equal(t, c.want, strings.Join(list, ", "), c.name)
	}
}
