package api

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/access"
	"tarry/api/apitest"
	"tarry/api/audit"
	"tarry/api/wire"
	"tarry/auth"
	"tarry/job/jobpb"
)

// fixed is a state of tokens that does not change.
type fixed struct{ *auth.State }

func (f fixed) Auth() *auth.State          { return f.State }
func (fixed) AuthChanged() <-chan struct{} { return nil }

// anybodyMayDoEverything needs no token even for what always needs one.
func anybodyMayDoEverything() *access.Control {
	return access.Open(access.Options{Source: fixed{auth.NewState(1, true, &jobpb.AuthSettings{Anonymous: everything()}, nil)}})
}

// secretFor makes the same text for the same id.
func secretFor(t testing.TB, id string) auth.Secret {
	sum := sha256.Sum256([]byte(id))
	s, err := auth.Generate(bytes.NewReader(sum[:]), id)
	require.NoError(t, err)
	return s
}

func ruleOf(t testing.TB, topics, verbs string) *jobpb.Rule {
	r, err := auth.ParseRule(strings.Fields(topics), strings.Fields(verbs))
	require.NoError(t, err)
	return r
}

// caller is one column of the matrix: who calls, and what the rules allow.
type testCaller struct {
	name      string
	header    string
	mine      auth.Verbs // on the topic of the calls, and of the cluster
	known     bool       // it has a token that is accepted, or needs none
	anonymous bool
}

// matrix has tokens for each verb, for none and for another topic, one that has ended and one
// that nobody made.
func matrix(t testing.TB, mode jobpb.AuthMode, anonymous ...*jobpb.Rule) (*auth.State, []testCaller) {
	s := auth.NewState(1, true, &jobpb.AuthSettings{Mode: mode, Anonymous: anonymous}, nil)
	var callers []testCaller
	token := func(id string, expires int64, rules ...*jobpb.Rule) testCaller {
		secret := secretFor(t, id)
		s = s.WithToken(s.Revision+1, auth.NewToken(&jobpb.Token{Id: id, Hash: secret.Hash(), Rules: rules, ExpiresMs: expires}))
		return testCaller{name: id, header: "Bearer " + secret.Text(), known: expires == 0}
	}
	for _, verb := range auth.VerbNames() {
		c := token(verb, 0, ruleOf(t, "*", verb))
		v, _ := auth.ParseVerb(verb)
		c.mine = auth.Verbs(1) << v
		callers = append(callers, c)
	}
	all := strings.Join(auth.VerbNames()[:5], " ")
	callers = append(callers, token("other-topic", 0, ruleOf(t, "other.*", all)), token("nothing", 0),
		token("ended", 1, ruleOf(t, "*", strings.Join(auth.VerbNames(), " "))),
		testCaller{name: "never made", header: "Bearer " + secretFor(t, "nobody").Text()},
		testCaller{name: "no token of ours", header: "Bearer secret"},
		testCaller{name: "none", known: true, anonymous: true, mine: auth.GrantsOf(anonymous).On("mine")})
	return s, callers
}

// want is what the table of routes says of a call: 0 when the caller gets to it.
func (c testCaller) want(mode jobpb.AuthMode, n access.Need) int {
	admin := n.Verbs()&auth.Admin != 0 && !(n.UnlessOff() && mode == off)
	denied := http.StatusForbidden
	if !c.known || c.anonymous {
		denied = http.StatusUnauthorized
	}
	otherTopic := c.name == "other-topic" && n.Verbs()&(auth.Add|auth.Consume|auth.Read|auth.Manage) != 0
	switch {
	case n.Open(), mode != enforce && !admin:
		return 0
	case !c.known:
		return denied
	case n == access.NeedCaller, n.Verbs()&c.mine != 0:
		return 0
	case otherTopic && !n.Everywhere():
		return -1 // it depends on the topic
	}
	return denied
}

// Each call of the table is tried by everybody, in each mode.
func TestWhoMayCallWhat(t *testing.T) {
	for _, mode := range []jobpb.AuthMode{off, jobpb.AuthMode_AUTH_REPORT, enforce} {
		for _, anonymous := range [][]*jobpb.Rule{nil, {ruleOf(t, "*", "add read")}} {
			state, callers := matrix(t, mode, anonymous...)
			control := access.Open(access.Options{Source: fixed{state}})
			defer control.Close()
			r := newRig(t, func(o *Options) {
				o.Access = control
				o.Metrics = http.NotFoundHandler()
			})
			for _, rt := range (&server{}).routes() {
				for method, e := range rt.methods {
					if rt.path == "/v1/stream" {
						continue // a stream of a caller that may consume does not end
					}
					for _, c := range callers {
						tryCall(t, r, mode, rt, method, e, c)
					}
				}
			}
		}
	}
}

func tryCall(t *testing.T, r *rig, mode jobpb.AuthMode, rt route, method string, e endpoint, c testCaller) {
	path := strings.NewReplacer("{topic}", "mine", "{id}", "an-id", "{name}", "a-name").Replace(wire.PathOf(rt.path))
	q := httptest.NewRequest(method, path, strings.NewReader("{"))
	if c.header != "" {
		q.Header.Set("Authorization", c.header)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	want := c.want(mode, e.need)
	about := []any{"%s %s by %s in mode %s: %s", method, rt.path, c.name, mode, w.Body}
	switch {
	case want > 0:
		require.Equal(t, want, w.Code, about...)
		require.Equal(t, want == http.StatusUnauthorized, w.Header().Get("WWW-Authenticate") != "", about...)
	case want < 0 && strings.Contains(rt.path, "{topic}"):
		require.Equal(t, http.StatusForbidden, w.Code, about...)
		require.Contains(t, w.Body.String(), `topic \"mine\"`, about...)
	case want == 0:
		require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, w.Code, about...)
	}
}

// A call that nobody has thought about cannot be made by anybody.
func TestEveryCallSaysWhoMayMakeIt(t *testing.T) {
	openCalls := []string{"GET /livez", "GET /readyz", "POST /v1/auth/bootstrap"}
	for _, rt := range (&server{}).routes() {
		for method, e := range rt.methods {
			call := method + " " + wire.PathOf(rt.path)
			require.NotEqual(t, access.Nobody, e.need, call)
			require.Equal(t, slices.Contains(openCalls, call), e.need.Open(), call)
			if e.manages {
				require.True(t, e.need.Audited() || method == http.MethodGet, "%s is not in the audit log", call)
			}
		}
	}
}

func TestANeedOfZeroLetsNobodyIn(t *testing.T) {
	s := newServer(Options{Queue: newRig(t).queue, Operator: &apitest.Operator{}, Access: anybodyMayDoEverything()})
	h := s.handler(route{path: "/", methods: methods{http.MethodGet: endpoint{handle: func(*call) error { return nil }}}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusForbidden, w.Code)
}

func TestTokensInRequests(t *testing.T) {
	state, _ := matrix(t, enforce)
	control := access.Open(access.Options{Source: fixed{state}, Registry: prometheus.NewRegistry()})
	defer control.Close()
	r := newRig(t, func(o *Options) { o.Access = control })
	text := secretFor(t, "read").Text()
	var refusals []string
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"bearer", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+text) }, 200},
		{"bearer in small letters", func(q *http.Request) { q.Header.Set("Authorization", "bearer  "+text) }, 200},
		{"basic", func(q *http.Request) { q.SetBasicAuth("read", text) }, 200},
		{"basic without a user", func(q *http.Request) { q.SetBasicAuth("", text) }, 200},
		{"basic with another user", func(q *http.Request) { q.SetBasicAuth("add", text) }, 401},
		{"basic that is none", func(q *http.Request) { q.Header.Set("Authorization", "Basic !") }, 401},
		{"another scheme", func(q *http.Request) { q.Header.Set("Authorization", "Digest "+text) }, 401},
		{"no scheme", func(q *http.Request) { q.Header.Set("Authorization", text) }, 401},
		{"empty", func(q *http.Request) { q.Header.Set("Authorization", "") }, 401},
		{"none", func(*http.Request) {}, 401},
		{"a slip", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+text[:len(text)-1]+"x") }, 401},
		{"ended", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+secretFor(t, "ended").Text()) }, 401},
		{"never made", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+secretFor(t, "nobody").Text()) }, 401},
		{"two headers", func(q *http.Request) {
			q.Header.Add("Authorization", "Bearer "+text)
			q.Header.Add("Authorization", "Bearer "+text)
		}, 400},
		{"two in one header", func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+text+", Bearer "+text) }, 400},
		{"in a cookie", func(q *http.Request) { q.AddCookie(&http.Cookie{Name: "token", Value: text}) }, 401},
		{"in the query", func(q *http.Request) { q.URL.RawQuery = "access_token=" + text }, 401},
	} {
		q := httptest.NewRequest(http.MethodGet, "/v1/topics", nil)
		c.change(q)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		require.Equal(t, c.status, w.Code, "%s: %s", c.name, w.Body)
		require.NotContains(t, w.Body.String(), text[len(text)-20:], c.name)
		if c.status == http.StatusUnauthorized {
			require.Equal(t, []string{`Bearer realm="tarry"`, `Basic realm="tarry", charset="UTF-8"`}, w.Header()["Www-Authenticate"], c.name)
			refusals = append(refusals, w.Body.String())
		}
	}
	require.Len(t, slices.Compact(refusals), 1, "the replies differ, so they tell which tokens there are")
}

// auditOf is nil: the tests of the audit log set their own.
func auditOf(*Options) *audit.Log { return nil }
