package ui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tarry/job"
)

// shown has addresses of every page, on the queue that rig.fill fills.
var shown = map[string][]string{
	Root:           {Root, "/ui/?prefix=none", "/ui/?prefix=mail"},
	"/ui/topic":    {"/ui/topic?topic=orders", "/ui/topic?topic=orders&state=delayed", "/ui/topic?topic=mail&state=dead", "/ui/topic?topic=none", "/ui/topic?topic=done&state=finished"},
	"/ui/job":      {"/ui/job?id=o1", "/ui/job?id=..", "/ui/job?id=m1", "/ui/job?id=d1"},
	editPath:       {"/ui/job/edit?id=o1", "/ui/job/edit?id=..", "/ui/job/edit?id=m1", "/ui/job/edit?id=d1"},
	settingsPath:   {"/ui/topic/settings?topic=done", "/ui/topic/settings?topic=none", "/ui/topic/settings?topic=.."},
	deadPath:       {deadPath},
	deadTopicsPath: {"/ui/dead/topics?reason=smtp", "/ui/dead/topics?reason=none", deadTopicsPath},
	upcomingPath:   {upcomingPath, "/ui/upcoming?step=3600&topic=orders", "/ui/upcoming?step=86400&at=2031-01-01T00:00:00Z"},
	inFlightPath:   {inFlightPath, "/ui/inflight?after=a"},
	clusterPath:    {clusterPath},
	schedulesPath:  {schedulesPath, "/ui/schedules?spec=0+6+*+*+*&zone=Europe/Berlin", "/ui/schedules?spec=never"},
	signInPath:     {signInPath, "/ui/signin?back=/ui/topic?topic=orders"},
	schedulePath:   {"/ui/schedule?schedule=nightly", "/ui/schedule?schedule=paused"},
	"/ui/absent":   {"/ui/absent", "/ui/job?id=absent", "/ui/job"}, // errors
}

// acts has a form for every action.
var acts = map[string][]string{
	"/ui/topic/pause":   {"topic", "orders"},
	"/ui/topic/resume":  {"topic", "orders"},
	"/ui/topic/kick":    {"topic", "mail", "state", "dead"},
	"/ui/topic/purge":   {"topic", "orders", "state", "ready"},
	"/ui/topic/release": {"topic", "orders", "state", "reserved"},
	"/ui/topic/move":    {"topic", "orders", "state", "delayed", "to", "other"},
	"/ui/jobs/delete":   {"only", "o1"},
	"/ui/jobs/kick":     {"only", "m1"},
	movePath:            {"id", "o1", "to", "other"},

	"/ui/job/change":            {"id", "o2", "revision", "1", "priority", "5"},
	"/ui/topic/settings/change": {"topic", "done", "revision", "1", "set.rate", "5", "was.rate", ""},

	"/ui/dead/kick":         {"group", "topic=mail&reason=smtp"},
	"/ui/dead/purge":        {"group", "reason=smtp"},
	"/ui/upcoming/spread":   {"topic", "orders", "from", "2031-01-01T00:00:00Z", "step", "3600", "spread", "30m"},
	"/ui/upcoming/postpone": {"topic", "orders", "from", "2031-01-01T00:00:00Z", "step", "3600", "postpone", "30m"},
	"/ui/inflight/release":  {"topic", "orders", "consumer", "w1"},

	"/ui/schedule/run":    {"schedule", "nightly"},
	"/ui/schedule/pause":  {"schedule", "nightly"},
	"/ui/schedule/resume": {"schedule", "nightly"},
	"/ui/schedule/delete": {"schedule", "paused"},

	signInPath:  {tokenInput, "tarry_none"},
	signOutPath: {},

	"/ui/cluster/verify":      {},
	"/ui/cluster/transfer":    {"node", "n2"},
	"/ui/cluster/remove":      {"node", "n2"},
	"/ui/cluster/reset-clock": {},
}

func notApplied() error { return job.NotApplied("there is no leader") }

func TestEveryPageIsTested(t *testing.T) {
	for _, p := range pages {
		if p.get != nil {
			require.Contains(t, shown, p.path)
		}
		if p.post != nil {
			require.Contains(t, acts, p.path)
		}
	}
}

func TestPagesAreWellFormed(t *testing.T) {
	r := newRig(t)
	check := func(at string) {
		w := r.get(at)
		wellFormed(t, at, w)
	}
	check(Root) // nothing is there
	r.fill()
	for _, addresses := range shown {
		for _, at := range addresses {
			check(at)
		}
	}
	for at, form := range acts {
		wellFormed(t, at, r.post(at, form...))
	}
}

// wellFormed checks what holds for every page.
func wellFormed(t *testing.T, at string, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'", w.Header().Get("Content-Security-Policy"), at)
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), at)
	if w.Code == http.StatusSeeOther {
		return
	}
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"), at)
	doc := parsed(t, w)
	require.Len(t, all(doc, "h1"), 1, at)
	require.NotEmpty(t, words(all(doc, "h1")[0]), at)
	require.Len(t, all(doc, "main"), 1, at)
	require.Equal(t, "en", attribute(all(doc, "html")[0], "lang"), at)
	require.NotEmpty(t, words(all(doc, "title")[0]), at)
	require.Empty(t, all(doc, "style"), "%s: a style in the page", at)
	labels, ids := map[string]bool{}, map[string]bool{}
	for _, label := range all(doc, "label") {
		labels[attribute(label, "for")] = true
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if id := attribute(n, "id"); id != "" {
			require.False(t, ids[id], "%s: two elements have the id %s", at, id)
			ids[id] = true
		}
		for _, a := range n.Attr {
			require.NotEqual(t, "style", a.Key, "%s: <%s> has a style", at, n.Data)
			require.False(t, strings.HasPrefix(a.Key, "on"), "%s: <%s> has %s", at, n.Data, a.Key)
		}
		element(t, at, n, labels)
	}
}

// element checks what holds for one element of a page.
func element(t *testing.T, at string, n *html.Node, labels map[string]bool) {
	t.Helper()
	switch n.Data {
	case "script":
		require.Nil(t, n.FirstChild, "%s: a script in the page", at)
		require.True(t, strings.HasPrefix(attribute(n, "src"), assetRoot), at)
	case "input", "select", "textarea":
		if attribute(n, "type") != "hidden" {
			require.True(t, labels[attribute(n, "id")] || attribute(n, "aria-label") != "", "%s: %s %s has no label", at, n.Data, attribute(n, "name"))
		}
	case "button":
		require.NotEmpty(t, words(n)+attribute(n, "aria-label"), at)
	case "img":
		require.True(t, slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "alt" }), at)
	case "th":
		require.NotEmpty(t, attribute(n, "scope"), "%s: %s", at, words(n))
	case "table":
		require.Len(t, all(n, "caption"), 1, at)
	case "a":
		leads(t, at, attribute(n, "href"))
	case "form":
		leads(t, at, attribute(n, "action"))
	}
}

// leads checks that a link or a form of a page leads to a page.
func leads(t *testing.T, at, to string) {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err, at)
	if u.Path == "" && u.Fragment != "" {
		return
	}
	require.Empty(t, u.Host, "%s leads to %s", at, to)
	require.True(t, slices.ContainsFunc(pages, func(p page) bool { return p.path == u.Path }), "%s leads to %s, which is no page", at, to)
}

// hostile is all that could leave the place where it is shown.
const hostile = `"><script>alert(1)</script>'"><img src=x onerror=alert(2)>{{.}}` + "`${alert(3)}`"

func TestHostileTextIsOnlyText(t *testing.T) {
	r := newRig(t)
	quoted := func(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) }
	topic, id := "topic"+hostile, "javascript:"+hostile
	r.api(http.MethodPost, "/v1/jobs", `{"topic":"`+quoted(topic)+`","id":"`+quoted(id)+`","headers":{"a":"`+quoted(hostile)+`"},"body":"`+quoted(hostile)+`"}`)
	r.api(http.MethodPost, "/v1/jobs", `{"topic":"`+quoted(topic)+`","id":"json","body":{"`+quoted(hostile)+`":1}}`)
	for _, at := range []string{
		Root, address(Root, "prefix", topic), address("/ui/topic", "topic", topic), address("/ui/topic", "topic", topic, "state", "dead"),
		address("/ui/job", "id", id), address("/ui/job", "id", id, "body", "hex"), address("/ui/job", "id", "json"),
		address("/ui/job", "id", "no"+hostile), address("/ui/topic", "topic", topic, "state", hostile), address("/ui/topic", "topic", topic, "cursor", hostile),
		"/ui/" + url.PathEscape(hostile), address(Root, "prefix", hostile, "after", hostile),
	} {
		w := r.get(at)
		wellFormed(t, at, w)
	}
	w := r.post("/ui/jobs/delete", "id", id, "back", address("/ui/topic", "topic", topic))
	wellFormed(t, "confirm", w)
	r.queue.FailNext(errors.New(hostile))
	wellFormed(t, "failed", r.post("/ui/topic/pause", "topic", topic, "for", hostile, "back", address("/ui/topic", "topic", topic)))
	r.post("/ui/topic/pause", "topic", topic)
	w = r.get(Root)
	wellFormed(t, "flash", w)
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	r := newRig(t)
	r.fill()
	r.open(Root)
	token := r.cookies[tokenCookie].Value
	before := len(r.queue.Ops())
	for name, change := range map[string]func(*http.Request, url.Values){
		"cross-site":     func(q *http.Request, _ url.Values) { q.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":      func(q *http.Request, _ url.Values) { q.Header.Set("Sec-Fetch-Site", "same-site") },
		"foreign origin": func(q *http.Request, _ url.Values) { q.Header.Set("Origin", "http://evil.example") },
		"null origin":    func(q *http.Request, _ url.Values) { q.Header.Set("Origin", "null") },
		"foreign host":   func(q *http.Request, _ url.Values) { q.Host = "evil.example" },
		"no token":       func(_ *http.Request, form url.Values) { form.Del(tokenField) },
		"wrong token":    func(_ *http.Request, form url.Values) { form.Set(tokenField, strings.Repeat("A", len(token))) },
		"token in the URL": func(q *http.Request, form url.Values) {
			form.Del(tokenField)
			q.URL.RawQuery = tokenField + "=" + token
		},
		"no cookie": func(q *http.Request, _ url.Values) { r.cookies = map[string]*http.Cookie{} },
	} {
		t.Run(name, func(t *testing.T) {
			cookies := r.cookies
			defer func() { r.cookies = cookies }()
			for at := range acts {
				form := url.Values{tokenField: {token}, "topic": {"orders"}, "only": {"o1"}, confirmedField: {"1"}}
				probe := httptest.NewRequest(http.MethodPost, at, nil)
				change(probe, form)
				q := formOf(at, form)
				q.Host, q.URL.RawQuery = probe.Host, probe.URL.RawQuery
				for name, v := range probe.Header {
					q.Header[name] = v
				}
				w := r.send(q)
				require.Contains(t, []int{http.StatusForbidden, http.StatusMisdirectedRequest}, w.Code, "%s: %s", at, w.Body)
			}
			require.Len(t, r.queue.Ops(), before, "nothing was done")
		})
	}
	w := r.post("/ui/topic/pause", "topic", "orders")
	require.Equal(t, http.StatusSeeOther, w.Code, "with the token it is done")
}

func TestWaysBackStayInTheDashboard(t *testing.T) {
	r := newRig(t)
	for _, back := range []string{"http://evil.example/ui/", "//evil.example/ui/", `/\evil.example`, "/v1/jobs", "javascript:alert(1)", "%zz", "/ui/../v1", ""} {
		r.add(`{"topic":"orders","id":"o1","body":0}`)
		w := r.post("/ui/topic/pause", "topic", "orders", "back", back)
		require.Equal(t, "/ui/topic?topic=orders", w.Header().Get("Location"), back)
	}
}

func TestReadOnlyDashboardChangesNothing(t *testing.T) {
	r := newRig(t, func(o *Options) { o.ReadOnly = true })
	r.fill()
	before := len(r.queue.Ops())
	for path, addresses := range shown {
		if path == signInPath {
			continue // who signs in changes nothing
		}
		for _, at := range addresses {
			w := r.get(at)
			for _, form := range all(parsed(t, w), "form") {
				require.Equal(t, "get", attribute(form, "method"), at)
			}
		}
	}
	require.Empty(t, r.cookies, "no token is needed")
	r.cookies[tokenCookie] = &http.Cookie{Name: tokenCookie, Value: strings.Repeat("A", 24)}
	for at, form := range acts {
		if r.dashboard.pages[at].session {
			continue
		}
		w := r.post(at, append(form, confirmedField, "1")...)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Contains(t, mainText(t, parsed(t, w)), "read-only")
	}
	require.Len(t, r.queue.Ops(), before)
}

func TestOtherPathsAndMethodsAreErrorPages(t *testing.T) {
	r := newRig(t)
	for _, at := range []string{"/ui/none", "/ui/topic/", "/ui//", "/ui/../ui/none"} {
		w := r.get(at)
		require.Equal(t, http.StatusNotFound, w.Code, at)
		wellFormed(t, at, w)
	}
	for method, want := range map[string]string{http.MethodPost: "GET", http.MethodPut: "GET", http.MethodDelete: "GET"} {
		w := r.send(httptest.NewRequest(method, Root, nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, want, w.Header().Get("Allow"))
		wellFormed(t, method, w)
	}
	w := r.get("/ui/topic/pause")
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "POST", w.Header().Get("Allow"))
	require.Equal(t, Root, r.get("/ui").Header().Get("Location"))
}

func TestBrowserIsLedToTheDashboard(t *testing.T) {
	r := newRig(t)
	q := httptest.NewRequest(http.MethodGet, "/", nil)
	q.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	require.Equal(t, Root, r.send(q).Header().Get("Location"))
	q = httptest.NewRequest(http.MethodGet, "/", nil)
	q.Header.Set("Accept", "*/*")
	require.Equal(t, http.StatusMethodNotAllowed, r.send(q).Code, "a program gets the API's error")
}

func TestAssetsAreServedByTheirDigest(t *testing.T) {
	r := newRig(t)
	for file, at := range assetNames {
		w := r.get(at)
		require.Equal(t, http.StatusOK, w.Code, at)
		want, err := files.ReadFile("assets/" + file)
		require.NoError(t, err)
		require.Equal(t, want, w.Body.Bytes())
		require.NotEmpty(t, w.Header().Get("Content-Type"))
		require.Contains(t, w.Header().Get("Cache-Control"), "immutable")
	}
	require.Equal(t, http.StatusNotFound, r.get(assetRoot+"style.css").Code)
	require.Equal(t, http.StatusNotFound, r.get(assetRoot+"../templates/job.html").Code)
	require.Equal(t, http.StatusMethodNotAllowed, r.send(httptest.NewRequest(http.MethodDelete, assetNames["ui.js"], nil)).Code)
}
