package api

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/internal/secretkeys"
	"tarry/job"
	"tarry/job/jobpb"
)

const plainSecret = "a secret of sixteen bytes or more"

// secretRig is a rig that needs tokens, with keys that a test changes.
type secretRig struct {
	*closedRig
	path string
	ring *secretkeys.Ring
}

func newSecretRig(t *testing.T, keys ...secretkeys.Key) *secretRig {
	r := &secretRig{path: filepath.Join(t.TempDir(), "keys")}
	if len(keys) > 0 {
		r.write(t, keys...)
		var err error
		r.ring, err = secretkeys.Open(r.path)
		require.NoError(t, err)
	}
	r.closedRig = newClosedRig(t, func(o *Options) {
		o.CheckPush = func(string, string) error { return nil }
		o.Secrets = r.ring
	})
	return r
}

func (r *secretRig) write(t *testing.T, keys ...secretkeys.Key) {
	t.Helper()
	text := ""
	for _, k := range keys {
		text += k.Text() + "\n"
	}
	require.NoError(t, os.WriteFile(r.path, []byte(text), 0o600))
}

func (r *secretRig) rotate(keys ...secretkeys.Key) {
	r.t.Helper()
	r.write(r.t, keys...)
	_, err := r.ring.Reload()
	require.NoError(r.t, err)
}

// target sets the target of a topic by a PUT, and returns the revision of its settings.
func (r *secretRig) target(topic, secret string) any {
	r.t.Helper()
	w := r.with(r.root, "PUT", "/v1/topics/"+topic+"/settings", `{"push":{"url":"http://127.0.0.1:1/","secret":"`+secret+`"}}`)
	require.Equal(r.t, http.StatusOK, w.Code, w.Body)
	settings := decoded(r.t, w)["settings"].(map[string]any)
	require.Equal(r.t, true, settings["push"].(map[string]any)["has_secret"])
	return decoded(r.t, w)["revision"]
}

// stored returns what the state has of a topic's target.
func (r *secretRig) stored(topic string) *jobpb.PushTarget {
	r.t.Helper()
	t, err := job.Reads{Reader: r.queue}.Topic(r.t.Context(), topic, false)
	require.NoError(r.t, err)
	return t.Settings.Push
}

func (r *secretRig) call(method, path string) map[string]any {
	r.t.Helper()
	w := r.with(r.root, method, path, "")
	require.Equal(r.t, http.StatusOK, w.Code, w.Body)
	return decoded(r.t, w)
}

func TestASecretIsSealedBeforeItIsProposed(t *testing.T) {
	key := secretkeys.NewKey()
	r := newSecretRig(t, key)
	first := r.target("mail", plainSecret)
	p := r.stored("mail")
	require.Empty(t, p.Secret)
	require.NotContains(t, string(p.SealedSecret), plainSecret)
	opened, err := r.ring.Open("mail", p.SealedSecret)
	require.NoError(t, err)
	require.Equal(t, plainSecret, opened)
	require.Equal(t, first, r.target("mail", plainSecret), "the same settings change nothing")

	// A change of something else keeps it.
	w := r.with(r.root, "PATCH", "/v1/topics/mail/settings", `{"push":{"url":"http://127.0.0.1:1/","concurrency":3}}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, p.SealedSecret, r.stored("mail").SealedSecret)
	w = r.with(r.root, "PUT", "/v1/topics/mail/settings", `{"push":{"url":"http://127.0.0.1:1/","secret":"short"}}`)
	refused(t, w, 400, job.CodeInvalid, "has 5 bytes; it takes 16 to 256")
	for _, n := range []int{job.MinPushSecretBytes, job.MaxPushSecretBytes} {
		r.target("mail", strings.Repeat("x", n))
	}
	require.Equal(t, job.SealedSecretBytes, secretkeys.Overhead)
	require.Equal(t, map[string]any{
		"success": true, "plain": 0.0, "keys": []any{map[string]any{"id": key.ID(), "topics": 1.0, "held": true, "seals": true}},
	}, r.call("GET", "/v1/secrets"))
}

func TestRewrapSealsWithTheFirstKey(t *testing.T) {
	a, b := secretkeys.NewKey(), secretkeys.NewKey()
	r := newSecretRig(t, a)
	r.target("one", plainSecret)
	r.rotate(b)
	r.target("two", plainSecret)
	// A node without keys has set this one.
	results, err := r.queue.Do(auth.NewContext(t.Context(), auth.System()), []*jobpb.Op{{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{
		Topic: "plain", Settings: &jobpb.TopicSettings{Push: &jobpb.PushTarget{Url: "http://127.0.0.1:1/", Secret: plainSecret}},
	}}}})
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_OK, results[0].Code, results[0].Message)

	got := r.call("POST", "/v1/secrets/rewrap")
	require.Equal(t, []any{1.0, 1.0, 1.0}, []any{got["rewrapped"], got["unchanged"], got["failed"]})
	require.Contains(t, got["reason"], "topic one")
	require.Contains(t, got["reason"], a.ID())
	list := r.call("GET", "/v1/secrets")
	require.Equal(t, 0.0, list["plain"])
	require.Equal(t, []any{
		map[string]any{"id": b.ID(), "topics": 2.0, "held": true, "seals": true},
		map[string]any{"id": a.ID(), "topics": 1.0, "held": false},
	}, list["keys"])

	r.rotate(b, a)
	got = r.call("POST", "/v1/secrets/rewrap")
	require.Equal(t, []any{1.0, 2.0, 0.0}, []any{got["rewrapped"], got["unchanged"], got["failed"]})
	for _, topic := range []string{"one", "two", "plain"} {
		p := r.stored(topic)
		require.Empty(t, p.Secret)
		require.Equal(t, b.ID(), secretkeys.KeyOf(p.SealedSecret))
		opened, err := r.ring.Open(topic, p.SealedSecret)
		require.NoError(t, err)
		require.Equal(t, plainSecret, opened)
	}
	got = r.call("POST", "/v1/secrets/rewrap")
	require.Equal(t, []any{0.0, 3.0, 0.0}, []any{got["rewrapped"], got["unchanged"], got["failed"]})
}

func TestWithoutKeysSecretsStayPlain(t *testing.T) {
	r := newSecretRig(t)
	r.target("mail", plainSecret)
	require.Equal(t, plainSecret, r.stored("mail").Secret)
	require.Equal(t, map[string]any{"success": true, "plain": 1.0, "keys": []any{}}, r.call("GET", "/v1/secrets"))
	refused(t, r.with(r.root, "POST", "/v1/secrets/rewrap", ""), 409, job.CodeConflict, "--secrets-key-file")
	shop := r.make("shop", `{"topics":["*"],"verbs":["manage","push","read"]}`)
	refused(t, r.with(shop, "GET", "/v1/secrets", ""), 403, job.CodeForbidden, "admin")
	refused(t, r.with(shop, "POST", "/v1/secrets/rewrap", ""), 403, job.CodeForbidden, "admin")
}
