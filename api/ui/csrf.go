package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
)

// Actions are protected against pages of other sites twice. The API refuses requests that a
// browser marks as coming from another origin. And a form has a token that must be the value
// of a cookie: a foreign page can neither read the cookie nor, because it is SameSite=Strict,
// have it sent. The cookie is all that is remembered, so a form of one node may be sent to
// another, as by a load balancer.
const (
	tokenCookie = "tarry_ui"
	tokenField  = "csrf"
	flashCookie = "tarry_ui_flash"
)

const tokenBytes = 18

// token returns the token of the client, and gives it one if it has none.
func (q *request) token() string {
	if c, err := q.r.Cookie(tokenCookie); err == nil && validToken(c.Value) {
		return c.Value
	}
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails
	token := base64.RawURLEncoding.EncodeToString(b)
	q.setCookie(tokenCookie, token, 0)
	return token
}

func validToken(text string) bool {
	b, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(b) == tokenBytes
}

// tokenMatches reports whether the form is from a page that this client was shown.
func (q *request) tokenMatches() bool {
	c, err := q.r.Cookie(tokenCookie)
	return err == nil && validToken(c.Value) &&
		subtle.ConstantTimeCompare([]byte(c.Value), []byte(q.r.PostForm.Get(tokenField))) == 1
}

// setCookie sets a cookie for maxAge seconds; 0: until the browser ends.
func (q *request) setCookie(name, value string, maxAge int) {
	http.SetCookie(q.w, &http.Cookie{
		Name: name, Value: value, Path: Root, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: q.r.TLS != nil,
	})
}

const (
	flashSeconds = 30
	maxFlash     = 500 // bytes
)

// setFlash keeps a message for the next page.
func (q *request) setFlash(text string) {
	if text == "" {
		return
	}
	q.setCookie(flashCookie, base64.RawURLEncoding.EncodeToString([]byte(short(text, maxFlash))), flashSeconds)
}

// takeFlash returns the message for this page, and forgets it.
func (q *request) takeFlash() string {
	c, err := q.r.Cookie(flashCookie)
	if err != nil {
		return ""
	}
	q.setCookie(flashCookie, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return short(string(text), maxFlash)
}
