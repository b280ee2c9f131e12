package ui

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"tarry/job"
)

// Sessions lets people sign in with a token. A session is text that a cookie can have.
type Sessions interface {
	// SignIn makes a session for the holder of a token; id is that of the token. remote is the
	// address of the client.
	SignIn(ctx context.Context, token, remote string) (session, id string, err error)
	// Session returns the token of a session. An error has the code unauthorized if the session
	// has ended.
	Session(ctx context.Context, session, remote string) (token string, err error)
	// SignOut records that somebody has signed out.
	SignOut(session, remote string)
}

const (
	signInPath  = Root + "signin"
	signOutPath = Root + "signout"

	tokenInput = "token" // the field of the token

	sessionCookie = "tarry_session"
	// securePrefix is of cookies that browsers accept only over TLS, so that nobody who speaks
	// plain HTTP on the network can replace one.
	securePrefix = "__Secure-"

	codeUnauthorized job.Code = "unauthorized"
)

// signInView is the data of the page on which a person signs in.
type signInView struct {
	Message string // why the page is there
	Wrong   bool   // Message is about the token
	Plain   bool   // the token would be sent over the network without TLS
	Open    bool   // no token is needed at present
}

// identify finds out who the request is from: by the Authorization that the browser sends, which
// the API looks at, or by the session.
func (q *request) identify() {
	session := q.session()
	if q.r.Header.Get("Authorization") == "" && session != "" && q.Sessions != nil {
		token, err := q.Sessions.Session(q.r.Context(), session, q.r.RemoteAddr)
		switch {
		case err == nil:
			q.api.token = token
		case job.CodeOf(err) == codeUnauthorized:
			q.ended = true
			q.forgetSession()
		default:
			q.unsure = err // the node does not know at present; the session may be good
		}
	}
	q.person = q.whoever()
	q.person.Session = q.api.token != ""
}

// session returns the session of the browser; empty: it has none. Over TLS only a cookie counts
// that was set over TLS: the other one may be of somebody on the network, who would have the
// person work with a token of theirs.
func (q *request) session() string {
	names := []string{securePrefix + sessionCookie, sessionCookie}
	if q.r.TLS != nil {
		names = names[:1]
	}
	for _, name := range names {
		if c, err := q.r.Cookie(name); err == nil {
			return c.Value
		}
	}
	return ""
}

// overTLS reports whether the browser speaks TLS, with this node or with a proxy before it. A
// browser says with each form where its page is from, and a wrong answer harms only itself.
func (q *request) overTLS() bool {
	return q.r.TLS != nil || strings.HasPrefix(q.r.Header.Get("Origin"), "https://")
}

// keepSession gives the browser the session, until it ends or is closed.
func (q *request) keepSession(session string) {
	c := &http.Cookie{Name: sessionCookie, Value: session, Path: Root, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if q.overTLS() {
		c.Name, c.Secure = securePrefix+c.Name, true
	}
	http.SetCookie(q.w, c)
}

func (q *request) forgetSession() {
	for _, prefix := range []string{"", securePrefix} {
		if _, err := q.r.Cookie(prefix + sessionCookie); err == nil {
			http.SetCookie(q.w, &http.Cookie{Name: prefix + sessionCookie, Path: Root, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: prefix != ""})
		}
	}
}

// showSignIn shows the form.
func showSignIn(q *request) (any, error) {
	q.here = q.back(Root)
	return q.signInView(""), nil
}

func (q *request) signInView(message string) *signInView {
	return &signInView{Message: message, Plain: q.isReadable(), Open: q.person.mode == modeOff}
}

// isReadable reports whether what the browser sends can be read on a network.
func (q *request) isReadable() bool {
	if q.overTLS() || q.r.Header.Get("X-Forwarded-Proto") == "https" {
		return false
	}
	host, _, err := net.SplitHostPort(q.r.Host)
	if err != nil {
		host = q.r.Host
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host != "localhost" && (err != nil || !ip.Unmap().IsLoopback())
}

// signIn takes the token of the form. It is only in the body of the request: an address is
// kept by browsers and written to logs.
func signIn(q *request) (*outcome, error) {
	token := q.r.PostForm.Get(tokenInput)
	q.r.PostForm.Del(tokenInput)
	q.r.Form.Del(tokenInput) // a page shows again what was in a form
	if q.Sessions == nil {
		return nil, &failure{Status: http.StatusNotFound, Code: string(job.CodeNotFound), Message: "Nobody can sign in here."}
	}
	session, id, err := q.Sessions.SignIn(q.r.Context(), token, q.r.RemoteAddr)
	if err != nil {
		if job.CodeOf(err) != job.CodeOverloaded { // else there are as many as somebody sends
			// A warning, so that those from many addresses share a line (see cmd/tarry/repeats.go).
			q.Logger.Warn("a sign-in to the dashboard failed", "from", q.r.RemoteAddr, "error", err)
		}
		return nil, q.signInFailure(err)
	}
	q.Logger.Info("somebody signed in to the dashboard", "token", id, "from", q.r.RemoteAddr)
	q.keepSession(session)
	q.api.token = strings.TrimSpace(token)
	q.person = q.whoever()
	to := q.back(Root)
	if list := q.navigation(q.page, &q.person); to == Root && len(list) > 0 {
		to = list[0].Path
	}
	return &outcome{to: to, flash: "You are signed in with the token " + id + "."}, nil
}

func (q *request) signInFailure(err error) *failure {
	var e *job.Error
	if !errors.As(err, &e) {
		return failureOf(err, http.StatusInternalServerError)
	}
	if e.RetryAfter > 0 {
		q.w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	return failureOf(err, map[job.Code]int{
		codeUnauthorized: http.StatusUnauthorized, job.CodeOverloaded: http.StatusTooManyRequests, job.CodeNotApplied: http.StatusServiceUnavailable,
	}[e.Code])
}

// signOut ends the session of the browser.
func signOut(q *request) (*outcome, error) {
	if session := q.session(); session != "" && q.Sessions != nil {
		q.Sessions.SignOut(session, q.r.RemoteAddr)
		q.forgetSession()
	}
	return &outcome{to: signInPath, flash: "You are signed out."}, nil
}

// askToSignIn responds with the form in place of the page that was asked for, which comes after
// it. message says why, unless it is empty.
func (q *request) askToSignIn(status int, message string, wrong bool) (int, []byte) {
	if q.unsure != nil && !q.page.session {
		return q.fail(http.StatusServiceUnavailable, "This node cannot tell at present who you are: "+q.unsure.Error())
	}
	if status == http.StatusUnauthorized {
		// Of a scheme for which browsers have no window of their own: they show the page.
		q.w.Header().Set("WWW-Authenticate", `Bearer realm="tarry"`)
	}
	q.here = q.afterSignIn()
	// A link on another site was followed: then the browser does not send the cookie, which is
	// SameSite=Strict. It does when this page itself leads on.
	q.again = q.r.Method == http.MethodGet && q.r.Header.Get("Sec-Fetch-Site") == "cross-site"
	q.page = q.pages[signInPath]
	q.title = q.page.title
	if q.ready.at.IsZero() {
		q.begin()
	}
	v := q.signInView(sentence(message))
	v.Wrong = wrong
	return q.respond(cmp.Or(status, http.StatusInternalServerError), q.page.template, v)
}

// sentence returns the message of an error as a person reads it.
func sentence(message string) string {
	if message == "" || message[len(message)-1] == '.' {
		return message
	}
	return strings.ToUpper(message[:1]) + message[1:] + "."
}

// afterSignIn returns the address of the page to show after the sign-in.
func (q *request) afterSignIn() string {
	if q.r.Method != http.MethodPost && q.page.get != nil && !q.page.session {
		return q.r.URL.RequestURI()
	}
	return q.back(Root)
}
