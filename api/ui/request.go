package ui

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"tarry/auth"
)

// request is one request to the dashboard, and its response.
type request struct {
	*Dashboard
	w    http.ResponseWriter
	r    *http.Request
	api  caller
	page *page

	person person
	ended  bool  // the session that the browser sent is not accepted any more
	unsure error // why this node cannot tell whether it is

	formError error // of reading the form

	ready   readiness // of the node, when the request began
	stale   bool      // what is shown was read from this node alone
	failure *failure  // of the action that the page is shown after
	flash   string
	title   string
	here    string // address of the page that is shown
	again   bool   // the browser is to load the page again, with its cookies
}

// view is what the layout is rendered from.
type view struct {
	Title  string
	Path   string // of the page
	Nav    []navigation
	Live   bool
	Node   string
	Leader string // id; empty: none is known
	Ready  bool
	// Problems are why the node or its cluster is not well.
	Problems []string
	Stale    bool // what is shown may be behind
	Version  string
	Flash    string
	Failure  *failure
	// Actions: the page has forms, with this Token.
	Actions bool
	Token   string
	Here    string // the address of the page, for a way back to it
	Form    url.Values
	Data    any
	// Person is who looks. SignIn is the address to sign in at, also with another token; empty:
	// none is needed.
	Person *person
	SignIn string
	Again  bool
}

// outcome is what an action leads to: a page that asks for confirmation, or a redirect to
// a page, which shows flash.
type outcome struct {
	confirm *confirm
	to      string
	flash   string
}

// confirm asks before an action. The form goes to the same address with the same fields.
type confirm struct {
	Title  string
	Text   string   // what would be done to how many
	Items  []string // of them, if few
	Fields url.Values
	Action string // address of the form
	Verb   string // on the button
	Danger bool   // it cannot be undone
	Back   string // where Cancel leads
}

// Fields of forms.
const (
	confirmedField = "confirmed" // the confirm page was answered
	backField      = "back"      // address of the page that the form is on
)

// origin returns the scheme and host of the request.
func (q *request) origin() string {
	if q.r.TLS != nil {
		return "https://" + q.r.Host
	}
	return "http://" + q.r.Host
}

// begin reads the state of the node.
func (q *request) begin() {
	q.ready = q.api.readiness()
	// Who may not observe is not told who leads.
	q.stale = q.stale || q.ready.Leader == "" && q.person.may(auth.Observe, "")
}

// show responds with the page.
func (q *request) show(status int) (int, []byte) {
	q.begin()
	q.flash = q.takeFlash()
	q.title = q.page.title
	data, err := q.page.get(q)
	var f *failure
	switch {
	case errors.As(err, &f) && f.Status == http.StatusUnauthorized:
		return q.askToSignIn(f.Status, q.whyEnded(), false)
	case errors.As(err, &f):
		return q.fail(f.Status, f.Message)
	case err != nil:
		q.Logger.Error("a page of the dashboard failed", "path", q.r.URL.Path, "error", err)
		return q.fail(http.StatusInternalServerError, "A defect of the server interrupted the request.")
	}
	return q.respond(status, q.page.template, data)
}

// fail responds with a page about an error.
func (q *request) fail(status int, message string) (int, []byte) {
	if q.page == nil {
		q.page = &page{}
	}
	if q.ready.at.IsZero() {
		q.begin()
	}
	q.title = http.StatusText(status)
	return q.respond(status, "error", struct {
		Status  int
		Message string
	}{status, message})
}

func (q *request) respond(status int, template string, data any) (int, []byte) {
	v := &view{
		Title: q.title, Path: q.page.path, Nav: q.navigation(q.page, &q.person), Live: q.page.live && q.r.Method == http.MethodGet,
		Node: q.Node, Leader: q.ready.Leader, Ready: q.ready.Ready, Problems: q.problems(), Stale: q.stale, Version: q.Version,
		Flash: q.flash, Failure: q.failure, Actions: !q.ReadOnly, Here: cmp.Or(q.here, q.r.URL.RequestURI()), Form: q.r.Form, Data: data,
		Person: &q.person, Again: q.again,
	}
	if q.Sessions != nil && q.person.mode != modeOff && !q.page.session {
		v.SignIn = address(signInPath, backField, v.Here)
	}
	if v.Actions || q.page.session || q.person.Session {
		v.Token = q.token()
	}
	out, err := q.render(template, v)
	if err != nil {
		q.Logger.Error("a page of the dashboard cannot be rendered", "path", q.r.URL.Path, "error", err)
		return http.StatusInternalServerError, []byte("a defect of the server interrupted the request\n")
	}
	return status, out
}

// problems asks the leader how the cluster is, unless there is none.
func (q *request) problems() []string {
	list := append(q.ready.Reasons, q.ready.Warnings...)
	if q.stale || !q.person.granted(auth.Observe) {
		return list
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), healthTime)
	defer cancel()
	var health struct {
		Reasons []string `json:"reasons"`
	}
	if f := q.api.get(ctx, "/v1/cluster/health", &health); f != nil {
		return append(list, "The health of the cluster is not known: "+f.Message)
	}
	return append(list, health.Reasons...)
}

// healthTime bounds the question for the cluster's health.
const healthTime = time.Second

// readForm reads a form of at most size bytes.
func (q *request) readForm(size int64) error {
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Now().Add(readTime))
	q.r.Body = http.MaxBytesReader(q.w, q.r.Body, size)
	return q.r.ParseForm()
}

// fromStranger reports whether anybody may have sent the form: it is read before it takes one of
// the places for forms, so that nobody can take them from others by sending slowly.
func (q *request) fromStranger() bool {
	return q.r.Method == http.MethodPost && (q.person.MustSignIn() || q.page != nil && q.page.session)
}

// act runs the action of the page.
func (q *request) act() (int, []byte) {
	if !q.fromStranger() {
		q.formError = q.readForm(maxForm)
	}
	switch {
	case q.formError != nil:
		return q.fail(http.StatusBadRequest, "The form is too large, malformed, or did not arrive in time.")
	case q.ReadOnly && !q.page.session:
		return q.fail(http.StatusForbidden, "This dashboard is read-only (--ui=readonly).")
	case !q.tokenMatches():
		return q.fail(http.StatusForbidden, "The form is not from this dashboard, or is too old. Go back, load the page again, and repeat it.")
	case !validText(q.r.Form):
		return q.fail(http.StatusBadRequest, "The form has text that is not valid UTF-8.")
	}
	o, err := q.page.post(q)
	if err != nil {
		return q.actionFailed(err)
	}
	if o.confirm != nil {
		q.begin()
		q.title = o.confirm.Title
		o.confirm.Action = q.page.path
		o.confirm.Fields = q.fields()
		o.confirm.Back = q.back(Root)
		return q.respond(http.StatusOK, "confirm", o.confirm)
	}
	q.setFlash(o.flash)
	q.w.Header().Set("Location", o.to)
	return http.StatusSeeOther, nil
}

// actionFailed shows the page with the form, and the error beside it.
func (q *request) actionFailed(err error) (int, []byte) {
	var f *failure
	if !errors.As(err, &f) {
		q.Logger.Error("an action of the dashboard failed", "path", q.r.URL.Path, "error", err)
		return q.fail(http.StatusInternalServerError, "A defect of the server interrupted the request.")
	}
	switch {
	case q.page.session:
		return q.askToSignIn(f.Status, f.Message, f.Status == http.StatusUnauthorized)
	case f.Status == http.StatusUnauthorized:
		return q.askToSignIn(f.Status, "This was not done. "+cmp.Or(q.whyEnded(), "Sign in, and repeat it."), false)
	}
	to, back := q.backPage()
	if back == nil || back.get == nil {
		return q.fail(f.Status, f.Message)
	}
	q.failure, q.page, q.here = f, back, to.Path+querySuffix(to.Query())
	for name, values := range to.Query() {
		if !q.r.Form.Has(name) {
			q.r.Form[name] = values
		}
	}
	return q.show(f.Status)
}

// whyEnded says that the session has ended; empty: there was none.
func (q *request) whyEnded() string {
	if !q.ended {
		return ""
	}
	return "Your session has ended, or its token is not accepted any more. Sign in again."
}

// fields are those of the form, for the same form again.
func (q *request) fields() url.Values {
	fields := url.Values{}
	for name, values := range q.r.PostForm {
		if name != tokenField {
			fields[name] = values
		}
	}
	return fields
}

// value returns a value of the query or the form.
func (q *request) value(name string) string { return q.r.FormValue(name) }

// required is value for a field that must be there: an empty name would be another path of
// the API.
func (q *request) required(name string) (string, error) {
	v := q.value(name)
	if v == "" {
		return "", invalid(name, name+" is missing")
	}
	return v, nil
}

// number returns the value of a field, which is a finite number of what; ok is false if it is
// empty.
func (q *request) number(name, what string) (n float64, ok bool, err error) {
	text := q.value(name)
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, false, invalid(name, name+" must be a number of "+what)
	}
	return n, true, nil
}

// validText reports whether a form has only text that JSON can have.
func validText(form url.Values) bool {
	for _, values := range form {
		if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			return false
		}
	}
	return true
}

func (q *request) confirmed() bool { return q.value(confirmedField) != "" }

// back returns the address of the page that the form is on, to go to after an action;
// otherwise if the form names none of this dashboard.
func (q *request) back(otherwise string) string {
	to, page := q.backPage()
	if page == nil || page.get == nil || page.session {
		return otherwise
	}
	return to.Path + querySuffix(to.Query())
}

// backPage returns the page that the form is on; nil: none of this dashboard.
func (q *request) backPage() (*url.URL, *page) {
	to, err := url.Parse(q.value(backField))
	if err != nil || to.Scheme != "" || to.Host != "" || to.Opaque != "" {
		return nil, nil
	}
	return to, q.pages[to.Path]
}

func querySuffix(query url.Values) string {
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// address returns the address of a page with a query of names and values. Empty values are
// omitted.
func address(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return path + querySuffix(query)
}
