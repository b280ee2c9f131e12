package ui

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// led returns the pages that a page leads to at the top.
func led(doc *html.Node) (names []string) {
	for _, nav := range all(doc, "nav") {
		if attribute(nav, "aria-label") == "Pages" {
			for _, a := range all(nav, "a") {
				names = append(names, words(a))
			}
		}
	}
	return names
}

// What a token does not allow is not offered, and is refused all the same.
func TestPagesOfferWhatTheTokenAllows(t *testing.T) {
	for _, c := range []struct {
		id, rules string
		pages     string // in the navigation
		first     string // the page after the sign-in
		actions   []string
		not       []string
	}{
		{
			id: "looker", rules: `[{"topics":["*"],"verbs":["read","observe"]}]`,
			pages: "Topics Dead Upcoming In flight Schedules Cluster", first: Root,
			not: []string{"/ui/topic/pause", "/ui/topic/purge", "/ui/jobs/delete", "/ui/dead/kick", "/ui/schedule/run", "/ui/cluster/verify", "/ui/cluster/remove", "/ui/topic/settings/change", "/ui/job/change"},
		},
		{
			id: "manager", rules: `[{"topics":["*"],"verbs":["read","manage"]}]`,
			pages: "Topics Dead Upcoming In flight Schedules", first: Root,
			actions: []string{"/ui/topic/pause", "/ui/topic/purge", "/ui/jobs/delete", "/ui/dead/kick", "/ui/schedule/run", "/ui/topic/settings/change", "/ui/job/change"},
			not:     []string{"/ui/jobs/move", "/ui/topic/move", "/ui/cluster/verify"},
		},
		{
			id: "mover", rules: `[{"topics":["*"],"verbs":["read","manage","add"]}]`,
			pages: "Topics Dead Upcoming In flight Schedules", first: Root,
			actions: []string{"/ui/jobs/move", "/ui/topic/move"},
		},
		{
			id: "mail", rules: `[{"topics":["mail"],"verbs":["read","manage"]}]`,
			pages: "Topics Upcoming In flight Schedules", first: Root,
			actions: []string{"/ui/jobs/kick"},
			not:     []string{"/ui/cluster/verify", "/ui/schedule/run"},
		},
		{
			id: "operator", rules: `[{"topics":["*"],"verbs":["observe","operate"]}]`,
			pages: "Cluster", first: clusterPath,
			actions: []string{"/ui/cluster/verify", "/ui/cluster/remove"},
			not:     []string{"/ui/topic/pause"},
		},
		{id: "worker", rules: `[{"topics":["mail"],"verbs":["add","consume"]}]`, pages: "", first: Root},
	} {
		t.Run(c.id, func(t *testing.T) {
			r, root := enforced(t)
			w := r.signIn(Root, r.token(root, c.id, c.rules))
			require.Equal(t, c.first, w.Header().Get("Location"))
			require.Equal(t, c.pages, strings.Join(led(parsed(t, r.get(c.first))), " "))
			found := map[string]bool{}
			for path, addresses := range shown {
				for _, at := range append(addresses, "/ui/topic?topic=orders&state=ready") {
					w := r.get(at)
					require.NotEqual(t, http.StatusUnauthorized, w.Code, at)
					wellFormed(t, at, w)
					doc := parsed(t, r.get(at))
					if w.Code == http.StatusForbidden {
						require.Contains(t, mainText(t, doc), "is not allowed with this token", at)
						require.Contains(t, mainText(t, doc), "You are signed in with the token "+c.id+" .", at)
					}
					for _, a := range append(all(doc, "form"), all(doc, "button")...) {
						found[attribute(a, "action")], found[attribute(a, "formaction")] = true, true
					}
					for _, a := range led(doc) {
						require.Contains(t, c.pages, a, path)
					}
				}
			}
			for _, at := range c.actions {
				require.True(t, found[at], "%s is offered", at)
			}
			for _, at := range c.not {
				require.False(t, found[at], "%s is not offered", at)
				w := r.post(at, append(acts[at], confirmedField, "1")...)
				require.GreaterOrEqual(t, w.Code, 400, "%s is refused: %s", at, w.Body)
				doc := parsed(t, w)
				require.Regexp(t, "is not allowed with this token|does not exist|there is no", mainText(t, doc), at)
			}
		})
	}
}

// Each page of the navigation can be seen by whoever is led to it.
func TestWhoIsLedToAPageMaySeeIt(t *testing.T) {
	for _, rules := range []string{
		`[{"topics":["*"],"verbs":["read"]}]`, `[{"topics":["mail"],"verbs":["read"]}]`, `[{"topics":["ma*"],"verbs":["read","manage"]}]`,
		`[{"topics":["*"],"verbs":["observe"]}]`, `[{"topics":["*"],"verbs":["admin"]}]`, `[{"topics":["none"],"verbs":["read"]},{"topics":["*"],"verbs":["observe"]}]`,
	} {
		r, root := enforced(t)
		r.signIn(Root, r.token(root, "somebody", rules))
		for _, p := range pages {
			if p.nav == "" {
				continue
			}
			at := p.path
			doc := parsed(t, r.get(at))
			status := r.get(at).Code
			if strings.Contains(" "+strings.Join(led(doc), " ")+" ", " "+p.nav+" ") {
				require.Equal(t, http.StatusOK, status, "%s with %s", at, rules)
				require.NotContains(t, mainText(t, doc), "is not allowed", at)
				require.NotContains(t, mainText(t, doc), "There is no leader", at)
			} else {
				require.Equal(t, http.StatusForbidden, status, "%s with %s", at, rules)
			}
		}
	}
}

// Under enforce, what everybody may do needs no sign-in.
func TestWhatEverybodyMaySeeNeedsNoSignIn(t *testing.T) {
	r, root := enforced(t)
	r.call(root, http.MethodPut, "/v1/auth", `{"mode":"enforce","anonymous":[{"topics":["mail"],"verbs":["read"]}]}`)
	doc := r.open(Root)
	text := mainText(t, doc)
	require.Contains(t, text, "mail")
	require.NotContains(t, text, "orders")
	require.Contains(t, words(all(doc, "header")[0]), "Sign in")
	require.False(t, offers(doc, "/ui/topic/pause"))
	r.open("/ui/topic?topic=mail")
	require.Equal(t, http.StatusUnauthorized, r.get("/ui/topic?topic=orders").Code)
	require.Equal(t, http.StatusUnauthorized, r.post("/ui/topic/pause", "topic", "mail").Code)
}

// A person without the verb push sees where jobs are posted, and changes all else.
func TestPushIsForWhoMaySetIt(t *testing.T) {
	for verbs, may := range map[string]bool{`"read","manage"`: false, `"read","manage","push"`: true} {
		r, root := enforced(t)
		r.signIn(Root, r.token(root, "somebody", `[{"topics":["done"],"verbs":[`+verbs+`]}]`))
		doc := r.open("/ui/topic/settings?topic=done")
		seen := 0
		for _, input := range all(doc, "input") {
			if name := attribute(input, "name"); name == "push.url" || name == "set.rate" {
				seen++
				readOnly := false
				for _, a := range input.Attr {
					readOnly = readOnly || a.Key == "readonly"
				}
				require.Equal(t, name == "push.url" && !may, readOnly, name)
			}
		}
		require.Equal(t, 2, seen)
		w := r.post("/ui/topic/settings/change", "topic", "done", "revision", "1", "push.url", "https://hooks.example.com/x", "was.push.url", "", "push.secret", "0123456789abcdef")
		require.Equal(t, may, w.Code == http.StatusSeeOther, w.Body)
	}
}
