package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// signInLooks are how the pages of people who sign in are looked at.
var signInLooks = []look{
	{"wide, light", 1400, 900, "light"}, {"wide, dark", 1400, 900, "dark"},
	{"phone, light", 400, 800, "light"}, {"phone, dark", 400, 800, "dark"},
}

// People sign in to a cluster that asks for tokens, see and do what these allow, on all nodes,
// and are out when theirs is revoked.
func TestSigningInInABrowser(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	first, leader, follower := c.Nodes()[0], c.leader(), c.follower()
	fillShop(t, first.HTTP)
	root := filepath.Join(t.TempDir(), "root.token")
	c.tarry("auth", "bootstrap", "--addr", first.HTTP, "--data-dir", first.DataDir(), "-o", root)
	admin := func(args ...string) { c.tarry(append([]string{"--token-file", root}, args...)...) }
	token := func(id string, args ...string) string {
		path := filepath.Join(t.TempDir(), id)
		admin(append([]string{"token", "create", id, "-o", path}, args...)...)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return strings.TrimSpace(string(text))
	}
	everything, err := os.ReadFile(root)
	require.NoError(t, err)
	mails := token("mail-team-on-call", "--allow", "mail.*=read,manage")
	admin("auth", "mode", "enforce")
	b := newBrowser(t)
	for _, l := range signInLooks {
		t.Run(l.name, func(t *testing.T) {
			p := b.open(t, follower.HTTP, l)
			p.visit("/ui/topic?topic=orders.capture")
			requireReadable(p)
			p.signIn("tarry_wrong")
			require.Contains(t, p.text(), "This is not a token of Tarry")
			requireReadable(p)
			p.signIn(strings.TrimSpace(string(everything)))
			require.Contains(t, p.text(), "orders.capture")
			require.Contains(t, eval[string](p, `document.querySelector("header").innerText`), "root")
			p.addr = leader.HTTP // the session is that of all nodes
			for _, path := range []string{"/ui/", "/ui/topic?topic=orders.capture", "/ui/job?id=order-88150", "/ui/cluster", "/ui/dead", "/ui/upcoming"} {
				p.visit(path)
				require.NotContains(t, p.text(), "Sign in", path)
				requireReadable(p)
			}
			p.click(`form[action="/ui/signout"] button`)
			require.Contains(t, p.text(), "You are signed out.")

			p.visit("/ui/")
			p.signIn(mails)
			require.Contains(t, p.text(), "mail.reminder")
			require.NotContains(t, p.text(), "orders.capture")
			for _, path := range []string{"/ui/", "/ui/topic?topic=mail.reminder", "/ui/topic?topic=orders.capture", "/ui/upcoming", "/ui/inflight", "/ui/cluster"} {
				p.visit(path)
				requireReadable(p)
			}
			require.Contains(t, p.text(), "observe is not allowed with this token")
			p.click(`form[action="/ui/signout"] button`)
		})
	}
	t.Run("a topic is paused, and the token revoked", func(t *testing.T) {
		p := b.open(t, first.HTTP, signInLooks[0])
		p.visit("/ui/topic?topic=mail.welcome")
		p.signIn(mails)
		p.click(`form[action="/ui/topic/pause"] button`)
		require.Contains(t, p.text(), "Topic mail.welcome is paused.")
		admin("token", "revoke", "mail-team-on-call", "--yes")
		waitUntil(t, func() error { // this node hears of it with the log
			p.visit("/ui/topic/settings?topic=mail.welcome")
			if text := p.text(); !strings.Contains(text, "Your session has ended") {
				return fmt.Errorf("the page still shows: %s", text)
			}
			return nil
		})
		requireReadable(p)
	})
}

func (p *tab) signIn(token string) {
	p.Helper()
	p.do(chromedp.SetValue(chromedp.CSS("#token"), token))
	p.click(`form[action="/ui/signin"] button`)
}

// requireReadable checks that a page fits on the screen and has enough contrast.
func requireReadable(p *tab) {
	p.Helper()
	at := eval[string](p, `location.href`)
	require.Empty(p, eval[[]string](p, widerThanScreen), "%s is wider than the screen", at)
	require.Empty(p, eval[[]string](p, tooPale), "%s has text that is hard to read", at)
}
