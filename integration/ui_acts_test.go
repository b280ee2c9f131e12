package integration

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// confirm presses the button of the page that asks.
const confirm = `button[name="confirmed"]`

// fill replaces the text of an input.
func (p *tab) fill(css, text string) {
	p.Helper()
	p.do(chromedp.SetValue(chromedp.CSS(css), text))
}

// manageInBrowser does what actInBrowser leaves out: settings, due times, schedules,
// consumers that are gone, whole states, and the cluster.
func manageInBrowser(t *testing.T, p *tab) {
	changeSettingsInBrowser(t, p)
	rescheduleInBrowser(t, p)
	runSchedulesInBrowser(t, p)
	moveInBrowser(t, p)

	p.visit("/ui/inflight")
	p.fill("#consumer", "resize-1@web2")
	p.fill("#topic", "images.resize")
	p.click(`form[action="/ui/inflight/release"] button`)
	require.Contains(t, p.text(), "Give back the jobs of resize-1@web2 in images.resize?")
	p.click(confirm)
	require.Contains(t, p.text(), "1 job given back.")

	p.visit("/ui/cluster")
	p.click(`form[action="/ui/cluster/verify"] button`)
	p.click(confirm)
	require.Contains(t, p.text(), "All 3 nodes have the same state at index")
	next := eval[string](p, `document.querySelector("button[aria-label$='the leader']").getAttribute("aria-label")`)
	p.click("button[aria-label$='the leader']")
	require.Contains(t, p.text(), next+"?")
	p.click(confirm)
	require.Contains(t, p.text(), " leads.")
}

func changeSettingsInBrowser(t *testing.T, p *tab) {
	p.visit("/ui/topic/settings?topic=mail.welcome")
	setting := func(name string) string { return `label[for="` + name + `"] + input` }
	field := eval[string](p, `[...document.querySelectorAll(".setting label")].find((l) => l.textContent == "max_attempts").htmlFor`)
	p.fill(setting(field), "0.5")
	p.click("button.primary")
	require.Contains(t, p.text(), "max_attempts")
	require.Equal(t, "true", eval[string](p, `document.querySelector('[aria-invalid]').getAttribute("aria-invalid")`))
	p.fill(setting(field), "7")
	p.click("button.primary")
	require.Contains(t, p.text(), "Changed: max_attempts.")
	p.fill(setting("push.url"), "http://192.0.2.1/hook")
	p.click("button.primary")
	require.Contains(t, p.text(), "--push-allow", "the nodes do not allow the target")

	p.visit("/ui/job/edit?id=welcome-501030")
	p.fill("#priority", "5")
	p.fill("#in", "2h")
	p.click("button.primary")
	require.Contains(t, p.text(), "The job is changed.")
}

func rescheduleInBrowser(t *testing.T, p *tab) {
	p.visit("/ui/upcoming?step=3600&topic=mail.campaign")
	p.click("td.act a")
	p.fill("#spread", "4h")
	p.click(`form[action="/ui/upcoming/spread"] button:not([formaction])`)
	require.Regexp(t, `Spread [0-9,]+ jobs\?`, p.text())
	p.click(confirm)
	require.Contains(t, p.text(), "jobs of mail.campaign spread over 4 h")

	p.visit("/ui/upcoming?step=3600&topic=refunds")
	p.click("td.act a")
	p.fill("#postpone", "90m")
	p.click(`button[formaction="/ui/upcoming/postpone"]`)
	require.Regexp(t, `Postpone [1-9] jobs?\?`, p.text())
	p.click(confirm)
	require.Regexp(t, `[1-9] jobs? of refunds postponed by 1 h 30 min`, p.text())
}

func runSchedulesInBrowser(t *testing.T, p *tab) {
	p.visit("/ui/schedules")
	p.click(`button[aria-label="Run nightly-report now"]`)
	require.Contains(t, p.text(), "Schedule nightly-report runs now.")
	p.click(`button[formaction="/ui/schedule/pause"]`)
	require.Contains(t, p.text(), " is paused.")
	p.click(`button[formaction="/ui/schedule/resume"]`)
	require.Contains(t, p.text(), " is resumed.")
	p.visit("/ui/schedules")
	p.fill("#spec", "0 6 * * mon-fri")
	p.click(`form[action="/ui/schedules"] button`)
	require.NotContains(t, p.text(), "not done")
	p.visit("/ui/schedule?schedule=reconcile-payments")
	p.click(`button[formaction="/ui/schedule/delete"]`)
	p.click(confirm)
	require.Contains(t, p.text(), "Schedule reconcile-payments is deleted.")
}

func moveInBrowser(t *testing.T, p *tab) {
	due := time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339) // not while the test runs
	p.visit("/ui/topic?topic=mail.welcome&state=delayed&due_from=" + due)
	p.do(chromedp.Click(chromedp.CSS("tbody tr:nth-child(1) input")))
	p.fill(`input[name="to"]`, "mail.later")
	p.click(`button[formaction="/ui/jobs/move"]`)
	require.Contains(t, p.text(), "Move 1 job to mail.later?")
	p.click(confirm)
	require.Contains(t, p.text(), "1 job moved to mail.later.")

	p.visit("/ui/topic?topic=mail.welcome&state=delayed&due_from=" + due)
	p.fill(`input[name="to"]`, "mail.later")
	p.click(`button[formaction="/ui/topic/move"]`)
	require.Regexp(t, `Move [0-9]+ delayed jobs that match\?`, p.text())
	p.click(confirm)
	require.Regexp(t, `[0-9]+ jobs moved`, p.text())

	p.visit("/ui/topic?topic=mail.later&state=delayed")
	p.click(`button[formaction="/ui/topic/purge"]`)
	require.Regexp(t, `Delete [0-9]+ delayed jobs\?`, p.text())
	p.click(confirm)
	require.Regexp(t, `[0-9]+ jobs deleted`, p.text())
}
