package ui

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tarry/api"
	"tarry/api/access"
	"tarry/api/audit"
	"tarry/job"
)

// call calls the API with a token, which must succeed.
func (r *rig) call(token, method, path, body string) map[string]any {
	r.t.Helper()
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	require.Less(r.t, w.Code, 300, "%s %s: %s", method, path, w.Body)
	out := map[string]any{}
	require.NoError(r.t, json.Unmarshal(w.Body.Bytes(), &out))
	return out
}

// bootstrap makes the first token.
func (r *rig) bootstrap() (root string) {
	r.t.Helper()
	return r.call("", http.MethodPost, "/v1/auth/bootstrap", `{"secret":"`+bootstrapSecret+`"}`)["token"].(string)
}

// token makes a token with rules.
func (r *rig) token(root, id, rules string) string {
	r.t.Helper()
	return r.call(root, http.MethodPut, "/v1/tokens/"+id, `{"rules":`+rules+`}`)["token"].(string)
}

func (r *rig) mode(root, mode string) {
	r.t.Helper()
	r.call(root, http.MethodPut, "/v1/auth", `{"mode":"`+mode+`"}`)
}

// enforced is a filled rig that asks for tokens.
func enforced(t *testing.T, change ...func(*Options)) (r *rig, root string) {
	r = newRig(t, change...)
	r.fill()
	root = r.bootstrap()
	r.mode(root, "enforce")
	return r, root
}

// signIn sends the form of the page at an address as a browser does.
func (r *rig) signIn(at, token string) *httptest.ResponseRecorder {
	r.t.Helper()
	form := formIn(r.t, parsed(r.t, r.get(at)), signInPath)
	form.Set(tokenInput, token)
	return r.send(formOf(signInPath, form))
}

// formIn returns the fields of the form of a page that goes to an address.
func formIn(t *testing.T, doc *html.Node, action string) url.Values {
	t.Helper()
	for _, f := range all(doc, "form") {
		if attribute(f, "action") != action {
			continue
		}
		require.Equal(t, "post", attribute(f, "method"))
		form := url.Values{}
		for _, input := range all(f, "input") {
			form.Add(attribute(input, "name"), attribute(input, "value"))
		}
		return form
	}
	require.FailNow(t, "there is no form to "+action)
	return nil
}

// offers reports whether a page has a form to an address.
func offers(doc *html.Node, action string) bool {
	for _, name := range []string{"form", "button"} {
		for _, n := range all(doc, name) {
			if attribute(n, "action") == action || attribute(n, "formaction") == action {
				return true
			}
		}
	}
	return false
}

func (r *rig) sessionCookie() *http.Cookie {
	if c := r.cookies[securePrefix+sessionCookie]; c != nil {
		return c
	}
	return r.cookies[sessionCookie]
}

// randomField has a random value, in which anything can occur.
var randomField = regexp.MustCompile(`name="csrf" value="[^"]*"`)

func TestPagesAskForATokenUnderEnforce(t *testing.T) {
	r, _ := enforced(t)
	for path, addresses := range shown {
		for _, at := range addresses {
			w := r.get(at)
			if path == signInPath {
				require.Equal(t, http.StatusOK, w.Code)
				continue
			}
			if path == "/ui/absent" {
				continue
			}
			require.Equal(t, http.StatusUnauthorized, w.Code, at)
			require.Equal(t, []string{`Bearer realm="tarry"`}, w.Header()["Www-Authenticate"], "%s: browsers have a window of their own for Basic", at)
			require.Nil(t, r.sessionCookie())
			body := randomField.ReplaceAllString(w.Body.String(), "")
			for _, secret := range []string{"orders", "mail", "nightly", "n1", "v0.1.0"} {
				if !strings.Contains(at, secret) {
					require.NotContains(t, body, secret, "%s shows it to nobody", at)
				}
			}
			wellFormed(t, at, w)
		}
	}
	before := len(r.queue.Ops())
	for at, form := range acts {
		if !r.dashboard.pages[at].session {
			w := r.post(at, append(form, confirmedField, "1")...)
			require.Equal(t, http.StatusUnauthorized, w.Code, at)
			doc := parsed(t, w)
			require.Contains(t, mainText(t, doc), "This was not done.", at)
			require.True(t, offers(doc, signInPath), at)
		}
	}
	require.Len(t, r.queue.Ops(), before)
}

func TestSigningInAndOut(t *testing.T) {
	r, root := enforced(t)
	at := "/ui/topic?state=ready&topic=orders"
	w := r.signIn(at, "  "+root+"\n")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, at, w.Header().Get("Location"), "the page that was asked for")
	c := r.sessionCookie()
	require.Equal(t, sessionCookie, c.Name)
	require.Equal(t, "/ui/", c.Path)
	require.True(t, c.HttpOnly)
	require.False(t, c.Secure, "this is plain HTTP")
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.NotContains(t, c.Value, root[len("tarry_root_"):len("tarry_root_")+8], "the token is sealed")

	doc := r.open(at)
	require.Contains(t, mainText(t, doc), "You are signed in with the token root.")
	require.Contains(t, words(all(doc, "header")[0]), "token root Sign out")
	require.Contains(t, mainText(t, doc), "o1")
	require.Equal(t, http.StatusSeeOther, r.post("/ui/topic/pause", "topic", "orders").Code)
	for path, addresses := range shown {
		for _, at := range addresses {
			if w := r.get(at); path != "/ui/absent" {
				require.Equal(t, http.StatusOK, w.Code, at)
				wellFormed(t, at, r.get(at))
			}
		}
	}

	kept := *c
	w = r.send(formOf(signOutPath, formIn(t, doc, signOutPath)))
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, signInPath, w.Header().Get("Location"))
	require.Nil(t, r.sessionCookie())
	require.Contains(t, mainText(t, r.open(signInPath)), "You are signed out.")
	require.Equal(t, http.StatusUnauthorized, r.get(Root).Code)

	// The cookie is for the dashboard alone.
	q := httptest.NewRequest(http.MethodGet, "/v1/topics", nil)
	q.AddCookie(&kept)
	out := httptest.NewRecorder()
	r.handler.ServeHTTP(out, q)
	require.Equal(t, http.StatusUnauthorized, out.Code)
	q = httptest.NewRequest(http.MethodGet, "/v1/topics", nil)
	q.Header.Set("Authorization", "Bearer "+kept.Value)
	out = httptest.NewRecorder()
	r.handler.ServeHTTP(out, q)
	require.Equal(t, http.StatusUnauthorized, out.Code)
}

func TestSessionsOverTLSAreForTLS(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"with the node": func(q *http.Request) { q.TLS = &tls.ConnectionState{} },
		"with a proxy":  func(q *http.Request) { q.Header.Set("Origin", "https://example.com") },
	} {
		r, root := enforced(t)
		form := formIn(t, parsed(t, r.get(Root)), signInPath)
		form.Set(tokenInput, root)
		q := formOf(signInPath, form)
		change(q)
		require.Equal(t, http.StatusSeeOther, r.send(q).Code, name)
		c := r.sessionCookie()
		require.Equal(t, "__Secure-tarry_session", c.Name, name)
		require.True(t, c.Secure && c.HttpOnly && c.SameSite == http.SameSiteStrictMode, name)
		r.open(Root)
		form = formIn(t, r.open(Root), signOutPath)
		require.Equal(t, http.StatusSeeOther, r.send(formOf(signOutPath, form)).Code)
		require.Nil(t, r.sessionCookie())
	}
}

// Whoever speaks plain HTTP on the network can set the cookie without the prefix.
func TestASessionThatWasSetWithoutTLSDoesNotCountOverTLS(t *testing.T) {
	r, root := enforced(t)
	form := formIn(t, parsed(t, r.get(Root)), signInPath)
	form.Set(tokenInput, root)
	require.Equal(t, http.StatusSeeOther, r.send(formOf(signInPath, form)).Code)
	require.Equal(t, sessionCookie, r.sessionCookie().Name)
	require.Equal(t, http.StatusOK, r.get(Root).Code)
	q := httptest.NewRequest(http.MethodGet, Root, nil)
	q.TLS = &tls.ConnectionState{}
	require.Equal(t, http.StatusUnauthorized, r.send(q).Code)
}

// No answer to a token that is not accepted tells why.
func TestTokensThatAreNotAccepted(t *testing.T) {
	r, root := enforced(t)
	ended := r.token(root, "ended", `[]`)
	r.call(root, http.MethodDelete, "/v1/tokens/ended", "")
	unknown := strings.Replace(ended, "tarry_ended_", "tarry_nobod_", 1)
	texts := map[string]bool{}
	for _, c := range []struct {
		token, says string
	}{
		{ended, "The token is not known, was revoked or has ended"},
		{"", "This is not a token of Tarry"},
		{"secret", "This is not a token of Tarry"},
		{unknown, "mistyped"},
		{root + "x", "This is not a token of Tarry"},
		{strings.Repeat("x", 5000), "This is not a token of Tarry"},
		{"\x00\r\nX: y", "This is not a token of Tarry"},
	} {
		w := r.signIn("/ui/dead", c.token)
		require.Equal(t, http.StatusUnauthorized, w.Code, c.token)
		require.NotEmpty(t, w.Header().Get("WWW-Authenticate"))
		require.Nil(t, r.sessionCookie())
		if len(c.token) > 3 {
			require.NotContains(t, w.Body.String(), c.token, "it is not shown again")
		}
		doc := parsed(t, w)
		require.Contains(t, mainText(t, doc), c.says)
		require.Equal(t, "/ui/dead", formIn(t, doc, signInPath).Get(backField), "the next attempt leads there, too")
		texts[mainText(t, doc)] = true
	}
	require.Len(t, texts, 3)
	require.NotContains(t, r.log.String(), ended)

	// In an address it is nothing but text, which is not repeated.
	w := r.send(formOf(signInPath+"?"+tokenInput+"="+root, url.Values{tokenField: {r.cookies[tokenCookie].Value}}))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.NotContains(t, w.Body.String(), root)
	require.Nil(t, r.sessionCookie())
}

func TestAfterTheSignInAPageOfTheDashboardIsShown(t *testing.T) {
	r, root := enforced(t)
	for _, back := range []string{
		"http://evil.example/ui/", "//evil.example/ui/", `/\evil.example`, "/v1/jobs", "javascript:alert(1)", "%zz", "/ui/../v1", "", "/ui/none",
		"/ui/signin", "/ui/signin?back=//evil.example", "/ui/signout", "/ui/topic/pause", "https:///ui/", "/ui/\r\nSet-Cookie: a=b", `\\evil.example/ui/`,
	} {
		w := r.signIn(address(signInPath, backField, back), root)
		require.Equal(t, http.StatusSeeOther, w.Code, back)
		require.Equal(t, Root, w.Header().Get("Location"), back)
	}
	w := r.signIn(address(signInPath, backField, "/ui/job?id=../%2f&x=1#frag"), root)
	require.Equal(t, "/ui/job?id=..%2F%2F&x=1", w.Header().Get("Location"))
}

func TestARevokedTokenEndsItsSessions(t *testing.T) {
	for name, end := range map[string]func(r *rig, root string){
		"revoked": func(r *rig, root string) { r.call(root, http.MethodDelete, "/v1/tokens/ops", "") },
		"rotated": func(r *rig, root string) {
			r.call(root, http.MethodPost, "/v1/tokens/ops/rotate", `{"overlap":0}`)
		},
	} {
		r, root := enforced(t)
		ops := r.token(root, "ops", `[{"topics":["*"],"verbs":["read","manage","observe"]}]`)
		require.Equal(t, http.StatusSeeOther, r.signIn(Root, ops).Code)
		r.open(Root)
		end(r, root)
		before := len(r.queue.Ops())
		w := r.post("/ui/topic/pause", "topic", "orders", backField, "/ui/topic?topic=orders")
		require.Equal(t, http.StatusUnauthorized, w.Code, name)
		doc := parsed(t, w)
		require.Contains(t, mainText(t, doc), "This was not done. Your session has ended, or its token is not accepted any more.", name)
		require.Equal(t, "/ui/topic?topic=orders", formIn(t, doc, signInPath).Get(backField))
		require.Len(t, r.queue.Ops(), before, name)
		require.Nil(t, r.sessionCookie(), "the browser forgets it")
		require.Equal(t, http.StatusUnauthorized, r.get(Root).Code)
	}
}

// In the mode off nobody sees that there are tokens; in report everybody can do everything, and
// who signs in is known.
func TestOtherModes(t *testing.T) {
	r := newRig(t)
	r.fill()
	doc := r.open(Root)
	require.NotContains(t, words(doc), "Sign in")
	root := r.bootstrap()
	r.mode(root, "report")
	doc = r.open("/ui/topic?topic=orders")
	require.Contains(t, words(all(doc, "header")[0]), "Sign in")
	require.True(t, offers(doc, "/ui/topic/pause"))
	require.Equal(t, http.StatusSeeOther, r.post("/ui/topic/pause", "topic", "orders").Code)
	require.Equal(t, http.StatusUnauthorized, r.signIn(signInPath, "tarry_nobody").Code, "a wrong token is wrong in all modes")
	shop := r.token(root, "shop", `[{"topics":["mail"],"verbs":["read"]}]`)
	require.Equal(t, "/ui/dead", r.signIn("/ui/signin?back=/ui/dead", shop).Header().Get("Location"))
	doc = r.open("/ui/dead")
	require.Contains(t, words(all(doc, "header")[0]), "token shop Sign out")
	require.True(t, offers(doc, "/ui/dead/kick"), "nothing is refused")
	require.Equal(t, http.StatusSeeOther, r.post("/ui/topic/resume", "topic", "orders").Code)
	r.mode(root, "off")
	require.Contains(t, words(all(r.open(Root), "header")[0]), "token shop Sign out", "and the log says who it is")
}

func TestTheBrowsersOwnCredentialsStillWork(t *testing.T) {
	r, root := enforced(t)
	q := httptest.NewRequest(http.MethodGet, Root, nil)
	q.SetBasicAuth("root", root)
	w := r.send(q)
	require.Equal(t, http.StatusOK, w.Code)
	header := words(all(parsed(t, w), "header")[0])
	require.Contains(t, header, "token root")
	require.NotContains(t, header, "Sign out", "the browser would send them again")
	q = httptest.NewRequest(http.MethodGet, Root, nil)
	q.SetBasicAuth("root", "wrong")
	require.Equal(t, http.StatusUnauthorized, r.send(q).Code)
}

func TestReadOnlyDashboardsHaveSessions(t *testing.T) {
	r, root := enforced(t, func(o *Options) { o.ReadOnly = true })
	require.Equal(t, http.StatusSeeOther, r.signIn(Root, root).Code)
	doc := r.open(Root)
	require.False(t, offers(doc, "/ui/topic/pause"))
	require.Equal(t, http.StatusForbidden, r.post("/ui/topic/pause", "topic", "orders").Code)
	require.Equal(t, http.StatusSeeOther, r.send(formOf(signOutPath, formIn(t, doc, signOutPath))).Code)
}

// A browser does not send the cookie when a link on another site is followed. The page with the
// form leads on to itself once, and then it does.
func TestLinksOfOtherSitesLeadToPages(t *testing.T) {
	r, _ := enforced(t)
	follow := func(site string) bool {
		q := httptest.NewRequest(http.MethodGet, "/ui/job?id=o1", nil)
		q.Header.Set("Sec-Fetch-Site", site)
		w := r.send(q)
		require.Equal(t, http.StatusUnauthorized, w.Code)
		return strings.Contains(w.Body.String(), `<meta http-equiv="refresh" content="0">`)
	}
	require.True(t, follow("cross-site"))
	require.False(t, follow("same-origin"))
	require.False(t, follow("none"))
}

// Forms of strangers that do not arrive keep nobody from signing in, and no one who is signed in
// from sending forms.
func TestSlowFormsOfStrangersKeepNobodyOut(t *testing.T) {
	r, root := enforced(t)
	sign := formIn(t, parsed(t, r.get(Root)), signInPath)
	sign.Set(tokenInput, root)
	var begun, sent sync.WaitGroup
	end := make(chan struct{})
	for _, path := range []string{signInPath, signOutPath, "/ui/topic/pause"} {
		for range maxRequests {
			q := formOf(path, url.Values{})
			begun.Add(1)
			q.Body = &slowBody{end: end, read: begun.Done}
			sent.Go(func() { r.handler.ServeHTTP(httptest.NewRecorder(), q) })
		}
	}
	begun.Wait()
	require.Equal(t, http.StatusSeeOther, r.send(formOf(signInPath, sign)).Code)
	require.Equal(t, http.StatusSeeOther, r.post("/ui/topic/pause", "topic", "orders").Code)
	close(end)
	sent.Wait()
	sign.Set("back", strings.Repeat("x", maxStrangerForm))
	require.Equal(t, http.StatusBadRequest, r.send(formOf(signInPath, sign)).Code)
}

// slowBody is a body of which nothing arrives until the end.
type slowBody struct {
	end  chan struct{}
	read func()
	once sync.Once
}

func (b *slowBody) Read([]byte) (int, error) {
	b.once.Do(b.read)
	<-b.end
	return 0, io.EOF
}

func (b *slowBody) Close() error { return nil }

func TestSignInsThatFailAreLimitedByAddress(t *testing.T) {
	r, root := enforced(t)
	form := formIn(t, parsed(t, r.get(Root)), signInPath)
	try := func(from, token string) *httptest.ResponseRecorder {
		form.Set(tokenInput, token)
		q := formOf(signInPath, form)
		q.RemoteAddr = from
		return r.send(q)
	}
	var w *httptest.ResponseRecorder
	for range 1000 { // far more than come back in the time that this takes
		if w = try("192.0.2.7:1", "tarry_guess"); w.Code != http.StatusUnauthorized {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "6", w.Header().Get("Retry-After"))
	require.Contains(t, mainText(t, parsed(t, w)), "too many sign-ins from this address have failed")
	require.Equal(t, http.StatusSeeOther, try("192.0.2.7:2", root).Code, "who has a token is not locked out, such as behind the same proxy")
	require.Equal(t, http.StatusOK, r.get(Root).Code)
	for range 50 { // who is accepted is not limited
		require.Equal(t, http.StatusSeeOther, try("192.0.2.9:1", root).Code)
	}
}

// Repeated warnings share a line, lines of information do not.
func TestSignInsThatFailAreWarnings(t *testing.T) {
	var log bytes.Buffer
	r, _ := enforced(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r.signIn(Root, "guess")
	require.Contains(t, log.String(), `level=WARN msg="a sign-in to the dashboard failed"`)
	require.NotContains(t, log.String(), "guess")
}

func TestSignInsAreInTheAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	r := newRig(t)
	control := access.Open(access.Options{Source: r.queue, Audit: log})
	t.Cleanup(control.Close)
	o := r.dashboard.Options
	o.Sessions = control
	r.handler = api.New(api.Options{Queue: r.queue, Operator: r.operator, UI: New(o).Handler, Hosts: []string{"example.com"}, Access: control, CheckBootstrap: func(string) bool { return true }})
	root := r.bootstrap()
	r.mode(root, "enforce")
	gone := r.token(root, "gone", `[]`)
	r.call(root, http.MethodDelete, "/v1/tokens/gone", "")
	r.signIn(Root, gone)
	r.signIn(Root, "tarry_guess")
	r.signIn(Root, root)
	r.send(formOf(signOutPath, formIn(t, r.open(Root), signOutPath)))
	log.Close()
	var got []string
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var record audit.Record
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		require.NotContains(t, record.Resource+record.Reason, root)
		if strings.HasPrefix(record.Call, "POST /ui/") {
			require.Equal(t, "192.0.2.1:1234", record.Remote)
			require.Equal(t, "dashboard", record.Via)
			got = append(got, strings.Join([]string{record.Call, record.Principal, record.Resource, record.Outcome, record.Reason}, "|"))
		}
	}
	require.Equal(t, []string{
		"POST /ui/signin||token gone|denied|unknown_token",
		"POST /ui/signin|||denied|not_a_token",
		"POST /ui/signin|root|token root|done|",
		"POST /ui/signout|root||done|",
	}, got)
}

// unsure is a node that does not know the session, and cannot ask the leader.
type unsure struct{ Sessions }

func (unsure) Session(context.Context, string, string) (string, error) {
	return "", job.NotApplied("there is no leader")
}

// A session that may be good is not thrown away.
func TestANodeThatCannotTellWhoYouAreSaysSo(t *testing.T) {
	r, root := enforced(t, func(o *Options) { o.Sessions = unsure{o.Sessions} })
	require.Equal(t, http.StatusSeeOther, r.signIn(Root, root).Code)
	w := r.get(Root)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, mainText(t, parsed(t, w)), "This node cannot tell at present who you are: there is no leader")
	require.NotNil(t, r.sessionCookie())
	require.Equal(t, http.StatusServiceUnavailable, r.post("/ui/topic/pause", "topic", "orders").Code)
	r.mode(root, "report")
	r.open(Root)
	require.NotNil(t, r.sessionCookie())
}
