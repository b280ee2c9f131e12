package ui

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func TestThePushTargetIsChangedInAForm(t *testing.T) {
	const at, secret = "/ui/topic/settings?topic=mail", "a secret of sixteen"
	r := newRig(t)
	// change fills in the form that is shown and sends it.
	change := func(status int, pairs ...string) string {
		t.Helper()
		fields := []string{"topic", "mail", "revision", r.valueOf(at, "revision"), "back", at}
		for _, name := range []string{"push.url", "push.timeout", "push.concurrency", "push.job_urls"} {
			value := r.valueOf(at, name)
			if value == "not set" {
				value = ""
			}
			fields = append(fields, "was."+name, r.valueOf(at, "was."+name))
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					value = pairs[i+1]
				}
			}
			fields = append(fields, name, value)
		}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == pushSecret {
				fields = append(fields, pairs[i], pairs[i+1])
			}
		}
		w := r.post(settingsPath+"/change", fields...)
		require.Equal(t, status, w.Code, w.Body)
		require.NotContains(t, w.Body.String(), secret)
		return w.Body.String()
	}
	target := func() map[string]any {
		w := r.send(httptest.NewRequest(http.MethodGet, "/v1/topics/mail/settings", nil))
		var reply struct {
			Settings struct {
				Push map[string]any `json:"push"`
			} `json:"settings"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
		return reply.Settings.Push
	}
	change(http.StatusSeeOther, "push.url", "https://hooks.example.com/mail?key=5", pushSecret, secret, "push.concurrency", "5")
	require.Equal(t, map[string]any{"url": "https://hooks.example.com/mail?key=***", "has_secret": true, "concurrency": 5.0}, target())
	require.Equal(t, "https://hooks.example.com/mail?key=***", r.valueOf(at, "push.url"))
	require.NotContains(t, r.get(at).Body.String(), secret)

	change(http.StatusSeeOther, "push.timeout", "2.5s", "push.concurrency", "")
	require.Equal(t, map[string]any{"url": "https://hooks.example.com/mail?key=***", "has_secret": true, "timeout": 2.5}, target(), "the secret and the key stay")
	change(http.StatusSeeOther, "push.job_urls", "true", pushSecret, secret)
	require.Equal(t, true, target()["job_urls"])

	for name, wrong := range map[string]string{"push.url": "http://10.0.0.1/", "push.timeout": "soon", "push.concurrency": "1000", pushSecret: "short"} {
		require.Contains(t, change(http.StatusBadRequest, name, wrong), `id="`+name+`-wrong"`, name)
	}
	change(http.StatusSeeOther, "push.url", "", "push.job_urls", "", "push.timeout", "")
	require.Nil(t, target())
	require.Contains(t, mainText(t, r.open(at)), "Changed: push.")
}
