package api

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/api/audit"
	"tarry/auth"
)

// Each call that manages leaves a line that names what it was about, also if many jobs are, and
// in every mode.
func TestCallsThatManageNameWhatTheyAreAbout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	control := access.Open(access.Options{Source: fixed{auth.NewState(0, false, nil, nil)}, Audit: log})
	defer control.Close()
	r := newRig(t, func(o *Options) { o.Access = control })
	r.index("mail", `["order"]`)
	for _, id := range []string{"a", "b", "c", "held"} {
		r.ok("/v1/jobs", `{"topic":"mail","id":"`+id+`","body":1}`)
	}
	many := `{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"id":"j1"},{"id":"j2"},{"id":"j3"},{"id":"j4"},{"id":"j5"},{"id":"j6"},`, 3), ",") + `]}`
	imported := `{"jobs":[{"topic":"mail","due_at":"2040-01-01T00:30:00Z","body":1},{"topic":"sms","due_at":"2040-01-01T00:30:00Z","body":1}]}`
	want := [][2]string{{"PATCH /v1/topics/{topic}/settings", "topic mail"}}
	for _, c := range []struct{ method, path, body, call, resource string }{
		{"POST", "/", `{"command":"delete","id":"a"}`, "POST / delete", "job a"},
		{"POST", "/", `{"command":"finish","id":"b"}`, "", ""},
		{"POST", "/", `{"command":"delete","id":"c","token":"0-1-1"}`, "", ""},
		{"POST", "/v1/delete", `{"jobs":[{"id":"a"},{"id":"b"}]}`, "POST /v1/delete", "2 jobs: a, b"},
		{"POST", "/v1/kick", many, "POST /v1/kick", "18 jobs: j1, j2, j3, j4, j5, ..."},
		{"POST", "/v1/update", `{"jobs":[{"id":"a","priority":1}]}`, "POST /v1/update", "1 job: a"},
		{"POST", "/v1/import", imported, "POST /v1/import", "2 jobs: topic mail, topic sms"},
		{"DELETE", "/v1/jobs?topic=mail&header.order=secret&all=true", "", "DELETE /v1/jobs", "jobs of topic mail, header order"},
		{"PATCH", "/v1/jobs?id_prefix=a-&all=true", `{"priority":1}`, "PATCH /v1/jobs", "jobs of all topics, id_prefix a-"},
		{"POST", "/v1/jobs/kick?header.order=secret&all=true", "", "POST /v1/jobs/kick", "jobs of all topics, header order"},
		{"POST", "/v1/dead/kick", `{"all":true}`, "POST /v1/dead/kick", "all topics"},
		{"POST", "/v1/dead/purge", `{"all":true}`, "POST /v1/dead/purge", "all topics"},
		{"POST", "/v1/topics/mail/purge", `{"all":true}`, "POST /v1/topics/{topic}/purge", "topic mail"},
		{"POST", "/v1/jobs/batch", `{"jobs":[{"topic":"mail","body":1}]}`, "", ""},
	} {
		r.do(c.method, c.path, c.body)
		if c.call != "" {
			want = append(want, [2]string{c.call, c.resource})
		}
	}
	log.Close()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var got [][2]string
	for line := range strings.Lines(string(text)) {
		var record audit.Record
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		got = append(got, [2]string{record.Call, record.Resource})
	}
	require.Equal(t, want, got)
	require.NotContains(t, string(text), "secret")
}
