package ui

import (
	"bytes"
	"embed"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Root is the path below which the dashboard is.
const Root = "/ui/"

const (
	// maxRequests bounds the pages that are made at a time, and the forms that are read or acted
	// on: forms that arrive slowly must not keep anybody from looking.
	maxRequests = 64
	// maxForm bounds a form, in bytes: a page of jobs with the longest ids.
	maxForm = 256 << 10
	// maxStrangerForm bounds the forms of those who are not signed in, such as that to sign in.
	// They take none of the places for forms while they arrive.
	maxStrangerForm = 8 << 10
	// readTime and writeTime bound reading a form and writing a page.
	readTime, writeTime = 10 * time.Second, 30 * time.Second
)

// Options configures a Dashboard.
type Options struct {
	Node    string // id of this node
	Version string // of its binary
	// ReadOnly omits the forms that change something and refuses their requests.
	ReadOnly bool
	Logger   *slog.Logger // nil: nothing is logged
	Sessions Sessions     // nil: nobody can sign in
}

// Dashboard serves the pages of one node.
type Dashboard struct {
	Options
	now   func() time.Time
	slots chan struct{} // of pages
	forms chan struct{}
	looks map[string]look
	all   []*page          // in the order of the navigation
	pages map[string]*page // by path
}

// New returns a dashboard.
func New(o Options) *Dashboard {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Dashboard{Options: o, now: time.Now, slots: make(chan struct{}, maxRequests), forms: make(chan struct{}, maxRequests), pages: map[string]*page{}}
	for i := range pages {
		d.all, d.pages[pages[i].path] = append(d.all, &pages[i]), &pages[i]
	}
	d.looks = parse(d)
	return d
}

// Handler returns the handler of all paths below Root. It makes its calls to api, which is
// the HTTP API of this node: so a page can do what the API allows, and nothing else.
//
// The caller rejects requests for other hosts, and requests of other sites
// (http.CrossOriginProtection).
func (d *Dashboard) Handler(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		if name, ok := strings.CutPrefix(r.URL.Path, assetRoot); ok {
			serveAsset(w, r, name)
			return
		}
		status, out := d.serve(&request{Dashboard: d, w: w, r: r, api: caller{api: api, of: r}})
		head := w.Header()
		head.Set("Content-Type", "text/html; charset=utf-8")
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Length", strconv.Itoa(len(out)))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		w.WriteHeader(status)
		_, _ = w.Write(out) // fails if the client is gone
	})
}

// securityHeaders are in each response. A page loads nothing but its style sheet and its
// script from this node, and sends forms only to it.
//
// With the policy no-referrer, browsers would send "Origin: null" with forms, which cannot
// be told from a foreign page.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	"X-Content-Type-Options":  "nosniff",
	"Referrer-Policy":         "same-origin",
}

// serve handles one request and returns the whole response.
func (d *Dashboard) serve(q *request) (status int, out []byte) {
	defer func() {
		if p := recover(); p != nil {
			d.Logger.Error("the dashboard panicked", "path", q.r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			status, out = http.StatusInternalServerError, []byte("a defect of the server interrupted the request\n")
		}
	}()
	q.identify()
	p, ok := d.pages[q.r.URL.Path]
	q.page = p
	slots := d.slots
	if q.r.Method == http.MethodPost {
		slots = d.forms
	}
	if q.fromStranger() {
		q.formError = q.readForm(maxStrangerForm)
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		return http.StatusServiceUnavailable, []byte("too many requests are in progress; try again\n")
	}
	if !ok {
		return q.fail(http.StatusNotFound, "There is no such page.")
	}
	switch q.r.Method {
	case http.MethodGet, http.MethodHead:
		if p.get != nil {
			return q.show(http.StatusOK)
		}
	case http.MethodPost:
		if p.post != nil {
			return q.act()
		}
	}
	q.w.Header().Set("Allow", p.allow())
	return q.fail(http.StatusMethodNotAllowed, fmt.Sprintf("This address takes %s.", p.allow()))
}

// render returns a page of this look.
func (d *Dashboard) render(name string, v *view) ([]byte, error) {
	var b bytes.Buffer
	err := d.looks[name].ExecuteTemplate(&b, "layout", v)
	return b.Bytes(), err
}

//go:embed assets templates
var files embed.FS
