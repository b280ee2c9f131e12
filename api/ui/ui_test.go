package ui

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"tarry/api"
	"tarry/api/access"
	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a dashboard on a queue in memory, and a browser that keeps cookies.
type rig struct {
	t         *testing.T
	queue     *apitest.Queue
	operator  *apitest.Operator
	control   *access.Control
	dashboard *Dashboard
	handler   http.Handler
	log       *bytes.Buffer // of the API
	cookies   map[string]*http.Cookie
}

// bootstrapSecret proves to the rig that its first token may be made.
const bootstrapSecret = "proof"

func newRig(t *testing.T, change ...func(*Options)) *rig {
	r := &rig{t: t, queue: apitest.New(t), operator: &apitest.Operator{}, log: &bytes.Buffer{}, cookies: map[string]*http.Cookie{}}
	r.control = access.Open(access.Options{Source: r.queue})
	t.Cleanup(r.control.Close)
	o := Options{Node: "n1", Version: "v0.1.0", Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Sessions: r.control}
	for _, f := range change {
		f(&o)
	}
	r.dashboard = New(o)
	r.handler = api.New(api.Options{Queue: r.queue, Operator: r.operator, UI: r.dashboard.Handler, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Hosts: []string{"example.com"}, CheckPush: allowHooks, Access: r.control, CheckBootstrap: func(secret string) bool { return secret == bootstrapSecret }})
	return r
}

// allowHooks is the --push-allow of the rig.
func allowHooks(field, target string) error {
	if target != "" && !strings.HasPrefix(target, "https://hooks.example.com/") {
		return job.Invalid(field, "is not allowed")
	}
	return nil
}

// send sends a request with the cookies, and keeps those of the response.
func (r *rig) send(q *http.Request) *httptest.ResponseRecorder {
	for _, c := range r.cookies {
		q.AddCookie(c)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	for _, c := range w.Result().Cookies() {
		r.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(r.cookies, c.Name)
		}
	}
	return w
}

func (r *rig) get(address string) *httptest.ResponseRecorder {
	return r.send(httptest.NewRequest(http.MethodGet, address, nil))
}

// open gets a page that must be there.
func (r *rig) open(address string) *html.Node {
	r.t.Helper()
	w := r.get(address)
	require.Equal(r.t, http.StatusOK, w.Code, "%s: %s", address, w.Body)
	return parsed(r.t, w)
}

func formOf(address string, form url.Values) *http.Request {
	q := httptest.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return q
}

// post sends a form as its page would.
func (r *rig) post(address string, pairs ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	if r.cookies[tokenCookie] == nil {
		r.open(Root)
	}
	form := url.Values{tokenField: {r.cookies[tokenCookie].Value}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return r.send(formOf(address, form))
}

// api calls the API, which must succeed.
func (r *rig) api(method, path, body string) {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	require.Less(r.t, w.Code, 300, "%s %s: %s", method, path, w.Body)
}

func (r *rig) add(body string) { r.t.Helper(); r.api(http.MethodPost, "/v1/jobs", body) }

// fill adds jobs in all states.
func (r *rig) fill() {
	r.t.Helper()
	r.api(http.MethodPatch, "/v1/topics/done/settings", `{"retain":3600}`)
	for _, body := range []string{
		`{"topic":"orders","id":"o1","body":{"order":1},"headers":{"tenant":"t1"}}`,
		`{"topic":"orders","id":"o2","delay":3600,"body":"later"}`,
		`{"topic":"orders","id":"..","delay":3600,"body_base64":"AAH/"}`,
		`{"topic":"mail","id":"m1","body":"","max_attempts":1}`,
		`{"topic":"done","id":"d1","body":"x"}`,
	} {
		r.add(body)
	}
	r.api(http.MethodPut, "/v1/schedules/nightly", `{"spec":"0 6 * * *","zone":"Europe/Berlin","job":{"topic":"reports","body":{"night":"{{planned}}"}}}`)
	r.api(http.MethodPut, "/v1/schedules/paused", `{"spec":"@every 90s","jitter":5,"overlap":"skip","job":{"topic":"reports","headers":{"a":"b"},"priority":7,"body":"x"}}`)
	r.api(http.MethodPost, "/v1/schedules/paused/pause", "")
	for _, topic := range []string{"mail", "done"} {
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/reserve", strings.NewReader(`{"topics":["`+topic+`"]}`)))
		_, rest, ok := strings.Cut(w.Body.String(), `"token":"`)
		require.True(r.t, ok, w.Body.String())
		token, _, _ := strings.Cut(rest, `"`)
		if topic == "mail" {
			r.api(http.MethodPost, "/v1/jobs/m1/bury", `{"token":"`+token+`","reason":"smtp: 550"}`)
		} else {
			r.api(http.MethodPost, "/v1/jobs/d1/finish", `{"token":"`+token+`"}`)
		}
	}
}

func parsed(t *testing.T, w *httptest.ResponseRecorder) *html.Node {
	t.Helper()
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	doc, err := html.Parse(w.Body)
	require.NoError(t, err)
	return doc
}

// all returns the elements with a name, in their order.
func all(n *html.Node, name string) (list []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			list = append(list, d)
		}
	}
	return list
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// words returns the text of a node, with single spaces.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func mainText(t *testing.T, doc *html.Node) string {
	t.Helper()
	list := all(doc, "main")
	require.Len(t, list, 1)
	return words(list[0])
}

func TestTopicsShowTheirCounts(t *testing.T) {
	r := newRig(t)
	r.fill()
	text := mainText(t, r.open(Root))
	require.Contains(t, text, "Topics 3 Delayed 2 Ready 1 Reserved 0 Dead 1")
	require.Contains(t, text, "orders 2 1 0 0 0")
}

func TestTopicsAreFoundByPrefix(t *testing.T) {
	r := newRig(t)
	for _, topic := range []string{"a", "mail", "mail.welcome", "mails", "mb"} {
		r.add(`{"topic":"` + topic + `","body":0}`)
	}
	for prefix, want := range map[string][]string{
		"mail": {"mail", "mail.welcome", "mails"}, "mail.": {"mail.welcome"}, "mb": {"mb"}, "": {"a", "mail", "mail.welcome", "mails", "mb"}, "x": nil,
	} {
		var found []string
		for _, th := range all(r.open(address(Root, "prefix", prefix)), "th") {
			if attribute(th, "scope") == "row" {
				found = append(found, words(th))
			}
		}
		require.Equal(t, want, found, "prefix %q", prefix)
	}
}

func TestPagesOfTopicsFollowEachOther(t *testing.T) {
	r := newRig(t)
	for i := range topicsPage + 7 {
		r.add(`{"topic":"t` + string(rune('A'+i/26)) + string(rune('a'+i%26)) + `","body":0}`)
	}
	seen := map[string]bool{}
	for at, pages := Root, 1; ; pages++ {
		doc := r.open(at)
		for _, th := range all(doc, "th") {
			if attribute(th, "scope") == "row" {
				require.False(t, seen[words(th)], "%s is on two pages", words(th))
				seen[words(th)] = true
			}
		}
		next := ""
		for _, a := range all(doc, "a") {
			if attribute(a, "rel") == "next" {
				next = attribute(a, "href")
			}
		}
		if next == "" {
			require.Equal(t, 2, pages)
			break
		}
		at = next
	}
	require.Len(t, seen, topicsPage+7)
}

func TestTopicIsPausedAndResumed(t *testing.T) {
	r := newRig(t)
	r.fill()
	w := r.post("/ui/topic/pause", "topic", "orders", "for", "90", "back", "/ui/topic?topic=orders&state=ready")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, "/ui/topic?state=ready&topic=orders", w.Header().Get("Location"))
	text := mainText(t, r.open(w.Header().Get("Location")))
	require.Contains(t, text, "Topic orders is paused.")
	require.Contains(t, text, "paused, ends in 1 min")
	require.NotContains(t, mainText(t, r.open(Root)), "is paused.", "a message is shown once")

	w = r.post("/ui/topic/resume", "topic", "orders", "back", Root)
	require.Equal(t, Root, w.Header().Get("Location"))
	require.NotContains(t, mainText(t, r.open("/ui/topic?topic=orders")), "paused")
}

func TestErrorOfTheAPIIsShownBesideTheForm(t *testing.T) {
	r := newRig(t)
	r.fill()
	for _, c := range []struct{ value, says string }{
		{"soon", "must be a number of seconds"},
		{"0", "for is 0 s; it must be at least 0.001 s"},
		{"1e12", "for"},
	} {
		w := r.post("/ui/topic/pause", "topic", "orders", "for", c.value, "back", "/ui/topic?topic=orders")
		require.Equal(t, http.StatusBadRequest, w.Code)
		doc := parsed(t, w)
		require.Contains(t, mainText(t, doc), c.says)
		require.Contains(t, mainText(t, doc), "Field for")
		for _, input := range append(all(doc, "input"), all(doc, "select")...) {
			if attribute(input, "name") == "for" {
				require.Equal(t, "true", attribute(input, "aria-invalid"))
			}
			if attribute(input, "name") == backField {
				require.Equal(t, "/ui/topic?topic=orders", attribute(input, "value"), "the next attempt is from the same page")
			}
		}
	}
}

func TestJobsAreDeletedAfterAConfirmation(t *testing.T) {
	r := newRig(t)
	r.fill()
	back := "/ui/topic?topic=orders&state=delayed"
	w := r.post("/ui/jobs/delete", "id", "o2", "id", "..", "back", back)
	require.Equal(t, http.StatusOK, w.Code)
	doc := parsed(t, w)
	require.Contains(t, mainText(t, doc), "Delete 2 jobs?")
	require.Len(t, r.delayed(), 2, "nothing is done yet")

	// The page's own form goes on.
	form := url.Values{}
	for _, input := range append(all(doc, "input"), all(doc, "button")...) {
		if name := attribute(input, "name"); name != "" && attribute(input, "type") != "search" {
			form.Add(name, attribute(input, "value"))
		}
	}
	w = r.send(formOf("/ui/jobs/delete", form))
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Empty(t, r.delayed())
	require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), "2 jobs deleted.")

	w = r.post("/ui/jobs/delete", "only", "o2", "confirmed", "1", "back", back)
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, mainText(t, parsed(t, w)), "does not exist", "the API's message")
}

func TestAllJobsOfAStateAreSwept(t *testing.T) {
	r := newRig(t)
	r.fill()
	text := mainText(t, r.open("/ui/topic?topic=orders&state=delayed"))
	require.Contains(t, text, "Delete all 2")
	require.NotContains(t, text, "Kick all")
	require.Contains(t, mainText(t, r.open("/ui/topic?topic=mail&state=dead")), "Kick all 1")
	require.NotContains(t, mainText(t, r.open("/ui/topic?topic=mail&state=ready")), " all ", "there is none")

	w := r.post("/ui/topic/purge", "topic", "orders", "state", "delayed")
	require.Contains(t, mainText(t, parsed(t, w)), "Delete 2 delayed jobs?")
	require.Len(t, r.delayed(), 2)
	w = r.post("/ui/topic/purge", "topic", "orders", "state", "delayed", "confirmed", "1")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Empty(t, r.delayed())
	require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), "2 jobs deleted.")

	w = r.post("/ui/topic/kick", "topic", "mail", "state", "dead", "confirmed", "1")
	require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), "1 job kicked.")

	r.api(http.MethodPost, "/v1/reserve", `{"topics":["orders"]}`)
	w = r.post("/ui/topic/release", "topic", "orders", "state", "reserved", "confirmed", "1")
	require.Contains(t, mainText(t, r.open(w.Header().Get("Location"))), "1 job released.")
	w = r.post("/ui/topic/purge", "topic", "orders", "state", "reserved", "confirmed", "1", "back", "/ui/topic?topic=orders")
	require.Equal(t, http.StatusBadRequest, w.Code, "the API's rule")
}

func TestEachActionLeavesALineInTheLog(t *testing.T) {
	r := newRig(t)
	r.fill()
	r.log.Reset()
	r.post("/ui/jobs/delete", "only", "o1")
	require.Empty(t, r.log.String(), "neither a page nor a question does anything")
	r.post("/ui/jobs/delete", "only", "o1", "confirmed", "1")
	r.post("/ui/topic/pause", "topic", "orders")
	require.Regexp(t, `(?m)\A[^\n]*level=INFO msg="management call" call="POST /v1/delete" from=192\.0\.2\.1:1234 status=200 via=dashboard fields=\[jobs\]$`, r.log.String())
	require.Regexp(t, `call="POST /v1/topics/orders/pause" from=192\.0\.2\.1:1234 status=200 via=dashboard`, r.log.String())
	require.Equal(t, 2, strings.Count(r.log.String(), "\n"), r.log.String())
}

func (r *rig) delayed() []*jobpb.Job {
	r.t.Helper()
	page, err := r.queue.Jobs(r.t.Context(), &jobpb.JobQuery{Topic: "orders", State: jobpb.State_STATE_DELAYED, Max: 10}, true)
	require.NoError(r.t, err)
	return page.Jobs
}

func TestDeadJobIsKicked(t *testing.T) {
	r := newRig(t)
	r.fill()
	w := r.post("/ui/jobs/kick", "only", "m1", "confirmed", "1", "back", "/ui/job?id=m1")
	require.Equal(t, "/ui/job?id=m1", w.Header().Get("Location"), w.Body)
	require.Contains(t, mainText(t, r.open("/ui/job?id=m1")), "m1 ready")
}

func TestBodiesAreShownInTheirForms(t *testing.T) {
	r := newRig(t)
	r.fill()
	require.Contains(t, mainText(t, r.open("/ui/job?id=o1")), `{ "order": 1 }`)
	require.Contains(t, mainText(t, r.open("/ui/job?id=o1&body=text")), `{"order":1}`)
	require.Contains(t, mainText(t, r.open("/ui/job?id=o1&body=hex")), "7b 22 6f 72")
	require.Contains(t, mainText(t, r.open("/ui/job?id=..")), "00 01 ff", "bytes that are no text")
	require.Contains(t, mainText(t, r.open("/ui/job?id=m1")), "The body is empty.")

	r.add(`{"topic":"big","id":"big","body":"` + strings.Repeat("a", 200_000) + `"}`)
	w := r.get("/ui/job?id=big")
	require.Less(t, w.Body.Len(), 100_000, "a page is bounded")
	require.Contains(t, mainText(t, parsed(t, w)), "This is the beginning.")
}

func TestPagesAreShownWithoutALeader(t *testing.T) {
	r := newRig(t)
	r.fill()
	r.operator.NotReady = []string{"there is no leader"}
	for _, at := range []string{Root, "/ui/topic?topic=orders", "/ui/job?id=o1"} {
		text := mainText(t, r.open(at))
		require.Contains(t, text, "There is no leader. This page shows the state of this node alone", at)
		require.Contains(t, text, "o", at)
	}
}

func TestPageFallsBackToItsNodeWhenTheLeaderFails(t *testing.T) {
	r := newRig(t)
	r.fill()
	r.queue.FailNext(notApplied())
	text := mainText(t, r.open(Root))
	require.Contains(t, text, "The leader did not answer in time.")
	require.Contains(t, text, "orders 2 1 0 0 0")
}

func TestRefusedReadIsAnErrorPage(t *testing.T) {
	r := newRig(t)
	w := r.get("/ui/job?id=none")
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, mainText(t, parsed(t, w)), "does not exist")
	require.Equal(t, http.StatusBadRequest, r.get("/ui/topic?topic=").Code)
	require.Equal(t, http.StatusBadRequest, r.get("/ui/topic?topic=t&cursor=x").Code)
	require.Equal(t, http.StatusBadRequest, r.get("/ui/job").Code)
}

func TestTopicsAreSorted(t *testing.T) {
	r := newRig(t)
	r.fill()
	for i := range topicsPage {
		r.add(fmt.Sprintf(`{"topic":"bulk%02d","body":0}`, i))
		for range i % 3 {
			r.add(fmt.Sprintf(`{"topic":"bulk%02d","delay":60,"body":0}`, i))
		}
	}
	first := func(at string) string {
		for _, th := range all(r.open(at), "th") {
			if attribute(th, "scope") == "row" {
				return words(th)
			}
		}
		return ""
	}
	require.Equal(t, "bulk00", first(Root))
	require.Equal(t, "mail", first("/ui/?sort=dead"))
	require.Equal(t, "bulk02", first("/ui/?sort=delayed"), "the largest first, then by name")
	require.Equal(t, "bulk00", first("/ui/?sort=none"))
	require.Equal(t, "bulk02", first("/ui/?sort=delayed&prefix=bulk"))
	second := ""
	for _, a := range all(r.open("/ui/?sort=delayed"), "a") {
		if attribute(a, "rel") == "next" {
			second = attribute(a, "href")
		}
	}
	require.Equal(t, "/ui/?from=50&sort=delayed", second)
	require.NotEmpty(t, first(second))
	require.Empty(t, first("/ui/?sort=dead&from=5000"))
	require.Equal(t, "mail", first("/ui/?sort=dead&from=-1"))
}
