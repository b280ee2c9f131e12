package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// request makes one call with any method. body may be nil.
func request(t *testing.T, method, addr, path string, body object) (int, object) {
	t.Helper()
	var content io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		require.NoError(t, err)
		content = bytes.NewReader(data)
	}
	q, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, content)
	require.NoError(t, err)
	resp, err := plainClient.Do(q)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer := object{}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

// browser is one Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// newBrowser starts Debian's Chromium, which ends with the test.
func newBrowser(t *testing.T) *browser {
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "the tests of the dashboard need chromium: apt-get install chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alone, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeBrowser := chromedp.NewContext(alone)
	t.Cleanup(func() {
		closeBrowser()
		stop()
	})
	require.NoError(t, chromedp.Do(ctx), "start chromium")
	return &browser{t, ctx}
}

// tab is one page in the browser. It fails the test when the console has an error, such as
// a breach of the Content-Security-Policy.
type tab struct {
	*testing.T
	ctx  context.Context
	addr string

	mu     sync.Mutex
	errors []string
}

// look is how a page is looked at.
type look struct {
	name   string // of a test
	width  int64
	height int64
	scheme string // light or dark
}

func (b *browser) open(t *testing.T, addr string, l look) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(b.ctx)
	p := &tab{T: t, ctx: ctx, addr: addr}
	t.Cleanup(func() {
		closeTab()
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.errors, "on the console")
	})
	// The first use of a context opens the tab, which ends with it: so it has no timeout.
	require.NoError(t, chromedp.Listen(ctx, p.listen))
	p.do(chromedp.EmulateViewport(l.width, l.height), call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}))
	return p
}

// call makes a command of the protocol an action.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, c, params)
		return err
	})
}

func (p *tab) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			text = "console." + string(e.Type)
		}
	case *log.EventEntryAdded:
		// Chromium logs the status of an error page, too.
		if e.Entry.Level == "error" && !strings.HasPrefix(e.Entry.Text, "Failed to load resource: the server responded with a status of") {
			text = e.Entry.Text
		}
	}
	if text != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errors = append(p.errors, text)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p, chromedp.Do(ctx, actions...))
}

func (p *tab) visit(path string) {
	p.Helper()
	p.do(chromedp.Navigate("http://" + p.addr + path))
}

// withoutScript turns the script of the pages off.
func (p *tab) withoutScript() {
	p.Helper()
	p.do(call(network.Enable, network.EnableParams{}), call(network.SetBlockedURLs, network.SetBlockedURLsParams{
		URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/ui/assets/*.js", Block: true}},
	}))
}

func eval[T any](p *tab, script string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	require.NoError(p, err)
	return v
}

// text is what the page shows.
func (p *tab) text() string {
	p.Helper()
	return eval[string](p, `document.querySelector("main").innerText`)
}

// click clicks what leads to another page, and waits for that.
func (p *tab) click(css string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(css), chromedp.NodeVisible))
	require.NoError(p, err)
}
