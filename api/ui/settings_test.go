package ui

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tarry/job"
)

// valueOf returns the value of a field of a page.
func (r *rig) valueOf(address, name string) string {
	r.t.Helper()
	doc := r.open(address)
	for _, n := range append(all(doc, "input"), all(doc, "option")...) {
		if n.Data == "input" && attribute(n, "name") == name {
			return attribute(n, "value")
		}
		if n.Data == "option" && attribute(n.Parent, "name") == name && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
			return words(n)
		}
	}
	return ""
}

func TestSettingsAreChangedInAForm(t *testing.T) {
	at := "/ui/topic/settings?topic=mail"
	for name, text := range map[string]string{
		"ttr": "2.5s", "max_attempts": "3", "backoff": "10s, 1m, 1h", "rate": "0.5", "late_finish": "refuse", "require_token": "true",
		"index_headers": "order, customer", "description": `"quoted", 5`, "retain": "14d",
	} {
		r := newRig(t)
		w := r.post(settingsPath+"/change", "topic", "mail", "revision", "0", "set."+name, text, "was."+name, "", "set.burst", "", "was.burst", "")
		require.Equal(t, at, w.Header().Get("Location"), "%s: %s", name, w.Body)
		require.Contains(t, mainText(t, r.open(at)), "Changed: "+name+".")
		require.Equal(t, text, r.valueOf(at, "set."+name), name)
		require.Equal(t, "1", r.valueOf(at, "revision"))

		r.post(settingsPath+"/change", "topic", "mail", "revision", "1", "set."+name, " ", "was."+name, text)
		require.Empty(t, r.valueOf(at, "set."+name), "%s is removed", name)
	}
}

// The fields take what the command line takes.
func TestDurationsOfSettingsHaveUnits(t *testing.T) {
	at := "/ui/topic/settings?topic=mail"
	for _, c := range []struct{ name, text, shown string }{
		{"ttr", "90", "1m30s"}, {"ttr", "1.5", "1.5s"}, {"ttr", "250ms", "250ms"}, {"retain", "2w", "14d"}, {"retain", "1d12h", "1d12h"},
		{"spread", "90s", "1m30s"}, {"expire", "3600", "1h"}, {"backoff", "5, 1m,1d", "5s, 1m, 1d"}, {"backoff", "30", "30s"},
		{"push.timeout", "2m", "2m"},
	} {
		r := newRig(t)
		field := "set." + c.name
		if c.name == "push.timeout" {
			field = c.name
			r.api(http.MethodPatch, "/v1/topics/mail/settings", `{"push":{"url":"https://hooks.example.com/","secret":"a secret of sixteen"}}`)
		}
		w := r.post(settingsPath+"/change", "topic", "mail", "revision", r.valueOf(at, "revision"), field, c.text, "was."+c.name, "",
			"push.url", r.valueOf(at, "push.url"), "was.push.url", r.valueOf(at, "push.url"))
		require.Equal(t, at, w.Header().Get("Location"), "%v: %s", c, w.Body)
		require.Equal(t, c.shown, r.valueOf(at, field), "%v", c)
	}
}

func TestSettingsThatAreWrongAreShownBesideTheirFields(t *testing.T) {
	r := newRig(t)
	at := "/ui/topic/settings?topic=mail"
	for name, text := range map[string]string{"rate": "fast", "ttr": "-1", "retain": "1y", "max_reserved": "0", "backoff": "1, soon", "index_headers": "a, b, c, d, e", "late_finish": "never"} {
		w := r.post(settingsPath+"/change", "topic", "mail", "revision", "0", "set."+name, text, "was."+name, "", "back", at)
		require.Equal(t, http.StatusBadRequest, w.Code, name)
		doc := parsed(t, w)
		require.Contains(t, mainText(t, doc), "This was not done.", name)
		found := false
		for _, n := range append(all(doc, "input"), all(doc, "select")...) {
			if attribute(n, "name") == "set."+name {
				found = true
				require.Equal(t, "true", attribute(n, "aria-invalid"), name)
				if n.Data == "input" {
					require.Equal(t, text, attribute(n, "value"), "what was written is not lost")
				}
			}
		}
		require.True(t, found, name)
	}
}

// Two people change the settings of a topic: the second sees that, and overwrites nothing.
func TestSettingsOfAnotherAreNotOverwritten(t *testing.T) {
	r := newRig(t)
	r.api(http.MethodPatch, "/v1/topics/mail/settings", `{"rate":1}`)
	w := r.post(settingsPath+"/change", "topic", "mail", "revision", "0", "set.rate", "2", "was.rate", "", "back", "/ui/topic/settings?topic=mail")
	require.Equal(t, http.StatusPreconditionFailed, w.Code)
	require.Equal(t, "1", r.valueOf("/ui/topic/settings?topic=mail", "set.rate"))
}

func TestEverySettingIsInTheForm(t *testing.T) {
	text := mainText(t, newRig(t).open("/ui/topic/settings?topic=mail"))
	for _, s := range job.Settings {
		require.Contains(t, text, s.Name)
	}
}
