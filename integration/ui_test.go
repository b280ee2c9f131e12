package integration

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// looks are how every page is looked at: on a large screen, a phone and between, in light and dark.
var looks = []look{
	{"wide, light", 1400, 900, "light"}, {"wide, dark", 1400, 900, "dark"},
	{"laptop, light", 1280, 760, "light"},
	{"phone, light", 400, 800, "light"}, {"phone, dark", 400, 800, "dark"},
	{"tablet, light", 820, 1100, "light"},
}

// dashboardPages are all pages, on the data of fillShop.
var dashboardPages = []string{
	"/ui/", "/ui/?prefix=mail.", "/ui/?prefix=none",
	"/ui/topic?topic=orders.capture", "/ui/topic?topic=mail.reminder&state=delayed", "/ui/topic?topic=webhooks.partner&state=dead",
	"/ui/topic?topic=images.resize&state=reserved", "/ui/topic?topic=orders.capture&state=finished", "/ui/topic?topic=none",
	"/ui/topic?topic=search.index.products.eu-north-1.catalogue-with-variants-and-translations-v2",
	"/ui/job?id=order-88150", "/ui/job?id=hook-501001", "/ui/job?id=reminder-501000&body=hex", "/ui/job?id=none",
	"/ui/job/edit?id=order-88150", "/ui/topic/settings?topic=orders.capture", "/ui/dead", "/ui/dead/topics?reason=x509:+certificate+has+expired", "/ui/upcoming", "/ui/upcoming?step=3600", "/ui/upcoming?step=86400&topic=mail.reminder&at=" + url.QueryEscape(time.Now().UTC().Truncate(24*time.Hour).Format(time.RFC3339)), "/ui/topic/settings?topic=none", "/ui/inflight", "/ui/schedules", "/ui/schedules?spec=0+6+*+*+mon-fri&zone=Europe/Berlin", "/ui/schedules?spec=0+25+*+*+*", "/ui/schedule?schedule=nightly-report", "/ui/cluster",
	"/ui/none",
}

// widerThanScreen lists what makes a page scroll sideways.
const widerThanScreen = `(() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const scrolls = (e) => { for (e = e.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== "visible") return true; return false; };
  return ["all: " + document.documentElement.scrollWidth + " px"].concat([...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > wide + 0.5 && !scrolls(e))
    .map((e) => e.outerHTML.slice(0, 120)));
})()`

// tooPale lists the texts whose contrast is below WCAG's AA: 4.5, or 3 for large text.
const tooPale = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (css) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
    return [255, 255, 255, 255];
  };
  const pale = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement, style = getComputedStyle(e);
    if (!n.data.trim() || !e.checkVisibility() || e.closest(".hidden")) continue;
    const a = light(rgba(style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    if (ratio < (large ? 3 : 4.5)) pale.push(n.data.trim().slice(0, 40) + ": " + ratio.toFixed(2));
  }
  return pale;
})()`

func TestDashboardInABrowser(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	addr := c.follower().HTTP
	fillShop(t, addr)
	b := newBrowser(t)
	if dir := os.Getenv("TARRY_SCREENSHOTS"); dir != "" { // make screenshots
		takeScreenshots(t, b, addr, dir)
	}
	t.Run("checks can fail", func(t *testing.T) { checksCanFail(t, b.open(t, addr, looks[3])) })
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			p := b.open(t, addr, l)
			p.visit("/ui/")
			require.Subset(t, dashboardPages, eval[[]string](p, `[...document.querySelectorAll("header nav a")].map((a) => a.getAttribute("href"))`), "every page of the navigation is looked at")
			for _, path := range dashboardPages {
				p.visit(path)
				require.Empty(t, eval[[]string](p, widerThanScreen), "%s is wider than the screen", path)
				require.Empty(t, eval[[]string](p, tooPale), "%s has text that is hard to read", path)
				dark := eval[string](p, `getComputedStyle(document.body).backgroundColor`) == "rgb(17, 20, 22)"
				require.Equal(t, l.scheme == "dark", dark, "%s has the colours of the scheme", path)
			}
		})
	}
	t.Run("actions", func(t *testing.T) { actInBrowser(t, b.open(t, addr, looks[0]), false) })
	t.Run("actions without JavaScript", func(t *testing.T) {
		p := b.open(t, addr, looks[3])
		p.withoutScript()
		actInBrowser(t, p, true)
		p.errors = nil // that the script is blocked
	})
	t.Run("other actions", func(t *testing.T) { manageInBrowser(t, b.open(t, addr, looks[0])) })
	t.Run("a leader is killed", func(t *testing.T) {
		p := b.open(t, c.follower().HTTP, looks[0])
		victim := c.leader()
		p.visit("/ui/topic?topic=refunds")
		c.kill(victim)
		p.click(`form[action="/ui/topic/resume"] button`)
		c.until(func() error { // a call that no leader took within its time was not made
			text := p.text()
			if strings.Contains(text, "This was not done.") {
				p.visit("/ui/topic?topic=refunds")
				p.click(`form[action="/ui/topic/resume"] button`)
			} else if strings.Contains(text, "Topic refunds is resumed.") {
				return nil
			}
			return fmt.Errorf("the page says neither that it is done nor that it is not: %s", text)
		})
		c.start(victim)
	})
	t.Run("keyboard", func(t *testing.T) { useKeyboard(t, b.open(t, addr, looks[0])) })
	t.Run("refresh", func(t *testing.T) { waitForRefresh(t, b.open(t, addr, looks[0])) })
	t.Run("no leader", func(t *testing.T) {
		n := c.follower()
		for _, other := range c.Nodes() {
			if other != n {
				c.kill(other)
			}
		}
		p := b.open(t, n.HTTP, looks[0])
		c.until(func() error {
			p.visit("/ui/")
			if text := p.text(); !strings.Contains(text, "There is no leader.") {
				return fmt.Errorf("the page does not say that there is no leader: %s", text)
			}
			return nil
		})
		require.Contains(t, p.text(), "orders.capture", "the page shows the node's own state")
		p.visit("/ui/job?id=order-88160")
		require.Contains(t, p.text(), "There is no leader.")
		require.Contains(t, p.text(), "TEA-0")
		p.visit("/ui/topic?topic=orders.capture")
		p.click(`form[action="/ui/topic/pause"] button`)
		require.Contains(t, p.text(), "This was not done.")
	})
}

// checksCanFail breaks a page in each way that the checks look for.
func checksCanFail(t *testing.T, p *tab) {
	p.visit("/ui/")
	eval[any](p, `void document.querySelector("main").append(Object.assign(document.createElement("p"), {textContent: "x".repeat(200)}))`)
	require.NotEmpty(t, eval[[]string](p, widerThanScreen))
	eval[any](p, `void (document.querySelector("h1").style.color = "#aaa")`)
	require.Len(t, eval[[]string](p, tooPale), 1)
	eval[any](p, `void document.body.append(Object.assign(document.createElement("script"), {textContent: "alert(1)"}))`)
	eval[any](p, `fetch("/v1/topics").catch(() => 0)`)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.GreaterOrEqual(t, len(p.errors), 2, "breaches of the Content-Security-Policy are on the console: %v", p.errors)
	p.errors = nil
}

// actInBrowser pauses a topic, and deletes and kicks jobs, as a person would.
func actInBrowser(t *testing.T, p *tab, plain bool) {
	p.visit("/ui/topic?topic=mail.welcome&state=delayed")
	eval[any](p, `void (document.querySelector("#for").options[0].value = "0")`)
	p.click(`form[action="/ui/topic/pause"] button`)
	require.Contains(t, p.text(), "for is 0 s; it must be at least 0.001 s")
	require.Equal(t, "for-wrong", eval[string](p, `document.querySelector("#for").getAttribute("aria-describedby")`))
	p.do(chromedp.SetValue(chromedp.CSS("#for"), "300"))
	p.click(`form[action="/ui/topic/pause"] button`)
	require.Contains(t, p.text(), "Topic mail.welcome is paused.")
	p.click(`form[action="/ui/topic/resume"] button`)
	require.Contains(t, p.text(), "Topic mail.welcome is resumed.")

	// None of these becomes due in between.
	p.visit("/ui/topic?topic=mail.welcome&state=delayed&due_from=" + time.Now().Add(5*time.Minute).UTC().Format(time.RFC3339))
	rows := `document.querySelectorAll("main tbody tr").length`
	before := eval[int](p, rows)
	p.click("td.act button[aria-label^=Delete]")
	require.Contains(t, p.text(), "Delete 1 job?")
	require.Empty(t, eval[[]string](p, widerThanScreen))
	require.Empty(t, eval[[]string](p, tooPale))
	p.click("a.button") // Cancel
	require.Equal(t, before, eval[int](p, rows))
	p.do(chromedp.Click(chromedp.CSS("tbody tr:nth-child(1) input")), chromedp.Click(chromedp.CSS("tbody tr:nth-child(2) input")))
	p.click("button.danger")
	require.Contains(t, p.text(), "Delete 2 jobs?")
	p.click("button.danger")
	require.Contains(t, p.text(), "2 jobs deleted.")
	require.Equal(t, before-2, eval[int](p, rows))
	if !plain {
		p.do(chromedp.Click(chromedp.CSS("[data-all]")))
		require.Equal(t, before-2, eval[int](p, `document.querySelectorAll("tbody input:checked").length`), "the box in the head selects all")
	}

	p.visit("/ui/topic?topic=webhooks.partner&state=dead")
	dead := eval[int](p, rows)
	p.click("td.act button[aria-label^=Kick]")
	p.click("button.primary")
	require.Contains(t, p.text(), "1 job kicked.")
	require.Equal(t, dead-1, eval[int](p, rows))

	p.visit("/ui/dead")
	p.click("tbody th a")
	require.Contains(t, p.text(), "webhooks.partner")
	p.visit("/ui/dead")
	groups := eval[int](p, rows)
	p.click("td.act button[aria-label^=Delete]")
	require.Regexp(t, `Delete [12] dead jobs?\?`, p.text())
	require.Empty(t, eval[[]string](p, widerThanScreen))
	p.click("a.button") // Cancel
	p.do(chromedp.SetValue(chromedp.CSS("#rate"), "0.5"))
	p.click("td.act button[aria-label^=Kick]")
	require.Contains(t, p.text(), "0.5 a second")
	p.click("button.primary")
	require.Regexp(t, `[12] jobs? kicked\.`, p.text())
	require.Equal(t, groups-1, eval[int](p, rows))
}

// waitForRefresh waits until a page has loaded itself again.
func waitForRefresh(t *testing.T, p *tab) {
	p.visit("/ui/topic?topic=mail.reminder&state=delayed")
	eval[any](p, `void (window.old = true)`)
	again := func() error {
		if eval[bool](p, `window.old === true`) {
			return errors.New("the page is still the old one")
		}
		return nil
	}
	waitUntil(t, again)
	p.do(chromedp.WaitReady(chromedp.CSS("#refresh input")))
	require.True(t, eval[bool](p, `document.querySelector("#refresh input").checked`))
	p.do(chromedp.Click(chromedp.CSS("#refresh input")))
	p.visit("/ui/")
	p.do(chromedp.WaitReady(chromedp.CSS("#refresh input")))
	require.False(t, eval[bool](p, `document.querySelector("#refresh input").checked`), "it is remembered")
	p.do(chromedp.Click(chromedp.CSS("#refresh input")))
}

// useKeyboard searches for a job and opens it, without a pointer.
func useKeyboard(t *testing.T, p *tab) {
	focused := `document.activeElement.textContent.trim() || document.activeElement.name`
	outline := `getComputedStyle(document.activeElement).outlineStyle`
	p.visit("/ui/")
	p.do(chromedp.KeyEvent("\t"))
	require.Equal(t, "Skip to the content", eval[string](p, focused), "the first stop leads to the content")
	require.Zero(t, eval[int](p, `Math.min(0, document.activeElement.getBoundingClientRect().top)`), "and is seen")
	seen := map[string]bool{}
	for range 100 {
		p.do(chromedp.KeyEvent("\t"))
		if eval[bool](p, `document.activeElement === document.body`) {
			break // behind the last stop
		}
		seen[eval[string](p, focused)] = true
		require.NotEqual(t, "none", eval[string](p, outline), "the focus on %s is visible", eval[string](p, focused))
	}
	for _, name := range []string{"Tarry", "Topics", "id", "prefix", "mail.invoice", "Pause"} {
		require.True(t, seen[name], "%s is reached: %v", name, seen)
	}
	p.do(chromedp.SendKeys(chromedp.CSS("#find"), "order-88150\r"), chromedp.WaitReady(chromedp.CSS("#body")))
	require.Contains(t, p.text(), "order-88150")
}
