package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/job"
)

// closedRig is a rig whose queue needs tokens once one has set the mode.
type closedRig struct {
	*rig
	root string // the text of the first token
}

func newClosedRig(t *testing.T, change ...func(*Options)) *closedRig {
	var control *access.Control
	r := newRig(t, append(change, func(o *Options) {
		control = access.Open(access.Options{Source: o.Queue.(access.Source), Audit: auditOf(o)})
		o.Access = control
		o.CheckBootstrap = func(secret string) bool { return secret == "proof" }
	})...)
	t.Cleanup(control.Close)
	w := r.post("/v1/auth/bootstrap", `{"secret":"proof"}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	return &closedRig{rig: r, root: decoded(t, w)["token"].(string)}
}

// with makes a call with a token; empty: without one.
func (r *closedRig) with(token, method, path, body string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return held(r.t, r.handler, q)
}

// make makes a token and returns its text.
func (r *closedRig) make(id, rules string) string {
	r.t.Helper()
	w := r.with(r.root, "PUT", "/v1/tokens/"+id, `{"rules":[`+rules+`]}`)
	require.Equal(r.t, http.StatusCreated, w.Code, w.Body)
	return decoded(r.t, w)["token"].(string)
}

func (r *closedRig) mode(mode string) {
	r.t.Helper()
	w := r.with(r.root, "PUT", "/v1/auth", `{"mode":"`+mode+`"}`)
	require.Equal(r.t, http.StatusOK, w.Code, w.Body)
}

func TestTheFirstTokenIsMadeOnce(t *testing.T) {
	r := newClosedRig(t)
	again := r.post("/v1/auth/bootstrap", `{"secret":"proof"}`) // the reply may have been lost
	require.Equal(t, http.StatusCreated, again.Code, again.Body)
	require.Equal(t, r.root, decoded(t, again)["token"])
	refused(t, r.post("/v1/auth/bootstrap", `{"secret":"proof","id":"second"}`), 412, job.CodeConditionFailed, "first token")
	refused(t, r.post("/v1/auth/bootstrap", `{"secret":"guess"}`), 403, job.CodeForbidden, "bootstrap-secret")
	refused(t, r.post("/v1/auth/bootstrap", `{}`), 400, job.CodeInvalid, "secret")
	refused(t, newRig(t).post("/v1/auth/bootstrap", `{"secret":"proof"}`), 403, job.CodeForbidden, "bootstrap-secret")
	w := r.with(r.root, "GET", "/v1/whoami", "")
	require.Equal(t, "root", decoded(t, w)["id"])
	require.Equal(t, "off", decoded(t, w)["mode"])
	w = r.with(r.root, "POST", "/v1/tokens/root/rotate", `{"overlap":0}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body)
	refused(t, r.post("/v1/auth/bootstrap", `{"secret":"proof"}`), 412, job.CodeConditionFailed, "first token")
}

func TestTheLifeOfAToken(t *testing.T) {
	r := newClosedRig(t)
	shop := r.make("shop", `{"topics":["mail"],"verbs":["add"]}`)
	add := func(token string) int {
		return r.with(token, "POST", "/v1/jobs", `{"topic":"mail","body":1}`).Code
	}
	r.mode("enforce")
	require.Equal(t, 201, add(shop))
	require.Equal(t, 401, add(""))
	require.Equal(t, 403, r.with(shop, "POST", "/v1/jobs", `{"topic":"sms","body":1}`).Code)
	refused(t, r.with(shop, "PUT", "/v1/tokens/other", `{"rules":[]}`), 403, job.CodeForbidden, "admin")
	refused(t, r.with("", "GET", "/v1/tokens", ""), 401, access.CodeUnauthorized, "token")

	// A change of the rules counts at once, and keeps the text.
	w := r.with(r.root, "PUT", "/v1/tokens/shop", `{"rules":[{"topics":["sms"],"verbs":["add"]}],"description":"the shop"}`)
	require.Equal(t, 200, w.Code, w.Body)
	require.NotContains(t, decoded(t, w), "token")
	require.Equal(t, 403, add(shop))
	w = r.with(r.root, "PUT", "/v1/tokens/shop", `{"rules":[{"topics":["mail"],"verbs":["add"]}],"description":"the shop"}`)
	require.Equal(t, 200, w.Code, w.Body)

	// Both texts are accepted for a while, or only the new one.
	w = r.with(r.root, "POST", "/v1/tokens/shop/rotate", `{"overlap":3600}`)
	require.Equal(t, 200, w.Code, w.Body)
	second := decoded(t, w)["token"].(string)
	require.Equal(t, 201, add(shop))
	require.Equal(t, 201, add(second))
	w = r.with(r.root, "POST", "/v1/tokens/shop/rotate", `{"overlap":0}`)
	third := decoded(t, w)["token"].(string)
	require.Equal(t, 401, add(second))
	require.Equal(t, 201, add(third))

	shown := decoded(t, r.with(r.root, "GET", "/v1/tokens/shop", ""))
	require.Equal(t, "the shop", shown["description"])
	require.NotContains(t, shown, "hash")
	list := r.with(r.root, "GET", "/v1/tokens?max=1", "").Body.String()
	require.Contains(t, list, `"next":"root"`)
	require.Contains(t, r.with(r.root, "GET", "/v1/tokens?max=1&cursor=root", "").Body.String(), `"id":"shop"`)

	require.Equal(t, 200, r.with(r.root, "DELETE", "/v1/tokens/shop", "").Code)
	require.Equal(t, 401, add(third))
	refused(t, r.with(r.root, "DELETE", "/v1/tokens/shop", ""), 404, job.CodeNotFound, "shop")
	refused(t, r.with(r.root, "GET", "/v1/tokens/shop", ""), 404, job.CodeNotFound, "shop")
	refused(t, r.with(r.root, "POST", "/v1/tokens/shop/rotate", ""), 404, job.CodeNotFound, "shop")
	refused(t, r.with(r.root, "DELETE", "/v1/tokens/root", ""), 412, job.CodeConditionFailed, "admin")
}

func TestBadTokens(t *testing.T) {
	r := newClosedRig(t)
	for _, c := range []struct{ id, body, says string }{
		{"UPPER", `{"rules":[]}`, "id"},
		{"a", `{"rules":[{"topics":["*"],"verbs":["write"]}]}`, "rules[0].verbs"},
		{"a", `{"rules":[{"topics":[],"verbs":["add"]}]}`, "topics"},
		{"a", `{"rules":[{"topics":["a*b"],"verbs":["add"]}]}`, "topics"},
		{"a", `{"rules":[{"topics":["mail"],"verbs":["admin"]}]}`, "topics"},
		{"a", `{"rules":[],"expires_at":"soon"}`, "expires_at"},
		{"a", `{"rules":[],"id_prefix":"$a"}`, "id_prefix"},
		{"a", `{"rules":[],"hash":"x"}`, "hash"},
		{"a", `{"rules":[` + strings.Repeat(`{"topics":["a"],"verbs":["add"]},`, 64) + `{"topics":["a"],"verbs":["add"]}]}`, "64"},
	} {
		w := r.with(r.root, "PUT", "/v1/tokens/"+c.id, c.body)
		require.Equal(t, 400, w.Code, "%s %s", c.body, w.Body)
		require.Contains(t, w.Body.String(), c.says, c.body)
	}
	refused(t, r.with(r.root, "PUT", "/v1/tokens/root?if_revision=0", `{"rules":[]}`), 412, job.CodeConditionFailed, "revision")
	refused(t, r.with(r.root, "PUT", "/v1/auth", `{"mode":"closed"}`), 400, job.CodeInvalid, "enforce")
	refused(t, r.with(r.root, "PUT", "/v1/auth", `{}`), 400, job.CodeInvalid, "mode")
	refused(t, r.with(r.root, "PUT", "/v1/auth", `{"mode":"off","anonymous":[{"topics":["*"],"verbs":["admin"]}]}`), 400, job.CodeInvalid, "admin")
	refused(t, r.with(r.root, "PUT", "/v1/auth?if_revision=99", `{"mode":"off"}`), 412, job.CodeConditionFailed, "revision")
}

// What a token may do is looked up when a job is touched, not when the token was given.
func TestOperationsByIDAreDecidedByTheTopicOfTheJob(t *testing.T) {
	r := newClosedRig(t)
	mine := r.make("mine", `{"topics":["mine"],"verbs":["add","consume","manage","read"]}`)
	for _, topic := range []string{"mine", "other"} {
		require.Equal(t, 201, r.post("/v1/jobs", `{"topic":"`+topic+`","id":"`+topic+`","body":1}`).Code)
	}
	other := r.ok("/v1/reserve", `{"topics":["other"]}`)["jobs"].([]any)[0].(map[string]any)["token"].(string)
	r.mode("enforce")
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/v1/jobs/other", ""},
		{"PATCH", "/v1/jobs/other", `{"priority":1}`},
		{"POST", "/v1/jobs/other/finish", `{"token":"` + other + `"}`},
		{"POST", "/v1/jobs/other/touch", `{"token":"` + other + `"}`},
		{"POST", "/v1/jobs/other/release", `{"token":"` + other + `"}`},
		{"POST", "/v1/jobs/other/bury", `{"token":"` + other + `"}`},
		{"POST", "/v1/jobs/other/kick", ``},
		{"POST", "/v1/jobs/other/move", `{"to":"mine"}`},
	} {
		w := r.with(mine, c.method, c.path, c.body)
		require.Equal(t, 404, w.Code, "%s %s: %s", c.method, c.path, w.Body)
		require.Equal(t, w.Body.String(), strings.ReplaceAll(r.with(mine, c.method, strings.Replace(c.path, "other", "never", 1), c.body).Body.String(), "never", "other"), "a job that may not be read shows that it is there")
	}
	require.Equal(t, 200, r.with(mine, "DELETE", "/v1/jobs/mine", "").Code)
	require.Equal(t, 200, r.with(r.root, "GET", "/v1/jobs/other", "").Code)

	// In a batch each item is decided by itself.
	w := r.with(mine, "POST", "/v1/jobs/batch", `{"jobs":[{"topic":"mine","body":1},{"topic":"other","body":1}]}`)
	require.Equal(t, 200, w.Code, w.Body)
	results := decoded(t, w)["results"].([]any)
	require.Equal(t, true, results[0].(map[string]any)["success"])
	require.Equal(t, "forbidden", results[1].(map[string]any)["code"])
}

// A reserve that waits and a stream end when their token is revoked.
func TestWhatWaitsEndsWithItsToken(t *testing.T) {
	r := newClosedRig(t)
	r.mode("enforce")
	for _, path := range []string{"/v1/reserve", "/v1/stream"} {
		token := r.make("worker", `{"topics":["mail"],"verbs":["consume"]}`)
		ended := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			body := `{"topics":["mail"],"wait":60}`
			if path == "/v1/stream" {
				body = `{"topics":["mail"],"credit":1}`
			}
			ended <- r.with(token, "POST", path, body)
		}()
		require.Eventually(t, func() bool { return r.queue.Waiting() == 1 }, time.Minute, time.Millisecond)
		require.Equal(t, 200, r.with(r.root, "DELETE", "/v1/tokens/worker", "").Code)
		select {
		case w := <-ended:
			require.Contains(t, w.Body.String(), `"code":"forbidden"`, path)
			require.Equal(t, map[string]int{"/v1/reserve": 403, "/v1/stream": 200}[path], w.Code)
		case <-time.After(time.Minute):
			t.Fatal(path + " goes on")
		}
	}
}
