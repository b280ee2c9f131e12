package beanstalk

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"tarry/api/access"
	"tarry/api/clienttls"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	modeOff = jobpb.AuthMode_AUTH_OFF
	enforce = jobpb.AuthMode_AUTH_ENFORCE

	// DefaultStrangerTime is how long a client that may do nothing has to send a token.
	DefaultStrangerTime = 10 * time.Second
	// strangerTries is how many commands of such a client get a reply.
	strangerTries = 3

	// lingerTime and lingerBytes bound what is still read of a client that is refused, so that
	// it gets the reply: closing with unread bytes would reset the connection.
	lingerTime  = time.Second
	lingerBytes = 16 << 10

	// complainEvery is the least time between two lines of the log about tokens.
	complainEvery = 10 * time.Second
)

// identity is who the client of a connection is. It keeps the text of the token, and not only
// whose it is: tokens are made, rotated and revoked while a connection lasts.
type identity struct {
	secret    auth.Secret        // zero: there is none
	cert      access.Certificate // by which the client is known instead; zero: it is not
	looked    bool               // for cert
	principal auth.Principal
	state     *auth.State // by which principal was found
	stop      func()      // ends watching the token
	stranger  *time.Timer // ends the connection of a client that may do nothing; nil: there is none
	tries     int         // commands that such a client has tried
	refused   bool        // the client has the reply that it is nobody, and the connection ends
}

// welcome finds out who the client is by the listener that it has called.
func (c *conn) welcome() {
	c.who.stop = func() {}
	if c.bound != nil {
		c.takeBound()
	}
	if c.who.secret.ID() == "" && nothingAllowed(c.server.Access.State()) {
		c.who.stranger = time.AfterFunc(c.server.StrangerTime, func() {
			if !c.known.Load() && nothingAllowed(c.server.Access.State()) && c.certificate().Principal(c.server.Access.State()).IsAnonymous() {
				c.cut()
			}
		})
	}
}

// farewell ends what welcome and useToken have started.
func (c *conn) farewell() {
	c.who.stop()
	if c.who.stranger != nil {
		c.who.stranger.Stop()
	}
}

// takeBound gives the connection the token of its listener. If that is not accepted, the client
// has none, and may send one.
func (c *conn) takeBound() {
	secret, err := c.bound()
	if err == nil {
		err = c.accept(secret, "connect")
	}
	if err == nil {
		_ = c.join() // if it fails, no command is executed
		return
	}
	c.server.complaints.Warn("the token of a listener for beanstalkd clients cannot be used, so they have none", "listener", c.net.LocalAddr().String(), "error", err)
}

// certificate returns what the client's certificate names; nothing while the handshake is under
// way.
func (c *conn) certificate() access.Certificate {
	return access.CertificateOf(clienttls.TokenOf(clienttls.StateOf(c.net)))
}

// takeCertificate gives the connection, once it has sent its first line and so the handshake is
// over, the token that its certificate names, instead of that of the listener. An error ends the
// connection.
func (c *conn) takeCertificate() error {
	c.who.looked = true
	cert := c.certificate()
	if cert.TokenID == "" {
		return nil
	}
	a := c.server.Access
	_, err := a.OfCertificate(c.base, cert, c.remote, a.State().Mode() != modeOff)
	switch {
	case err == nil || !c.refusesToken(cert.TokenID, err, "connect"):
		c.use(auth.Secret{}, cert)
		return c.join()
	case job.CodeOf(err) == job.CodeNotApplied: // nobody knows whether it is valid
		c.say(internalError)
		c.who.refused = true
		return errClose
	}
	return c.refuseToken(cert.TokenID, err)
}

// authenticate executes auth. An error ends the connection.
func (c *conn) authenticate(text string) error {
	secret, err := auth.Parse(text)
	if err == nil {
		err = c.accept(secret, authWord)
	} else if !c.refusesToken("", err, authWord) {
		err = nil // as if it had sent none
	}
	switch {
	case err == nil:
		c.who.looked = true // this token replaces that of the certificate
		if err := c.join(); err != nil {
			return err
		}
		c.say(authorized) // after OK clients expect a body
		return c.flushFull()
	case job.CodeOf(err) == job.CodeNotApplied: // nobody knows whether it is valid
		c.say(internalError)
		return c.flushFull()
	}
	return c.refuseToken(secret.ID(), err)
}

// refuseToken ends the connection of a client whose token is not accepted.
func (c *conn) refuseToken(id string, err error) error {
	c.server.complaints.Warn("a beanstalkd client has sent a token that is not accepted", "client", c.remote, "token", id, "error", err)
	c.say(unauthorized)
	c.who.refused = true
	return errClose
}

// accept makes a token that of the connection if it is accepted, or if nothing is refused.
func (c *conn) accept(secret auth.Secret, call string) error {
	a := c.server.Access
	_, err := a.Of(c.base, secret, c.remote, a.State().Mode() != modeOff)
	if err != nil && c.refusesToken(secret.ID(), err, call) {
		return err
	}
	c.useToken(secret)
	return nil
}

// join counts the connection as one of its token's. If that has as many as it may, the connection
// ends, as one does that is too many for the node.
func (c *conn) join() error {
	if c.server.Access.Join(&c.place, c.who.principal.TokenID()) == nil {
		return nil
	}
	c.say(outOfMemory)
	c.who.refused = true
	return errClose
}

// refusesToken counts a token that is not accepted, and reports whether it is refused for that.
func (c *conn) refusesToken(claimed string, err error, call string) bool {
	mode := c.server.Access.State().Mode()
	if mode == modeOff || job.CodeOf(err) == job.CodeNotApplied {
		return mode == enforce
	}
	why := auth.UnknownToken
	if errors.Is(err, auth.ErrExpired) {
		why = auth.ExpiredToken
	}
	r := &access.Request{Claimed: claimed, Remote: c.remote, Via: via, Call: call}
	c.server.Access.Denied(access.NewContext(c.base, r), why, 0, "", mode != enforce)
	return mode == enforce
}

// useToken makes a token that of the connection.
func (c *conn) useToken(secret auth.Secret) { c.use(secret, access.Certificate{}) }

// use makes a token that of the connection, by its text or by a certificate. The connection ends
// when that is not accepted any more.
func (c *conn) use(secret auth.Secret, cert access.Certificate) {
	c.who.stop()
	c.known.Store(true)
	c.who.secret, c.who.cert, c.who.tries = secret, cert, 0
	c.identify(c.server.Access.State())
	by := auth.TokenPrincipal(cert.TokenID)
	if secret.ID() != "" {
		by = auth.SecretPrincipal(secret)
	}
	r := &access.Request{Principal: by, Secret: secret, Certificate: cert}
	ctx, forget := c.server.Access.WhileAllowed(access.NewContext(c.base, r), 0, nil)
	stop := context.AfterFunc(ctx, func() {
		if access.Revoked(ctx) {
			c.cut()
		}
	})
	c.who.stop = func() { stop(); forget() }
}

// identify looks up whose the token of the connection is by a state.
func (c *conn) identify(s *auth.State) {
	c.who.state, c.who.principal = s, auth.Principal{}
	if c.who.cert.TokenID != "" {
		c.who.principal = c.who.cert.Principal(s)
		return
	}
	if c.who.secret.ID() == "" {
		return
	}
	if _, err := s.Authenticate(c.who.secret, time.Now().UnixMilli()); err == nil {
		c.who.principal = auth.SecretPrincipal(c.who.secret)
	}
}

// cut ends the connection before its next command. Any goroutine may call it.
func (c *conn) cut() {
	c.ended.Store(true)
	c.net.SetWriteDeadline(time.Now().Add(lingerTime))
	c.net.SetReadDeadline(longAgo)
}

// linger reads a little more of a client that is refused, so that it gets the reply.
func (c *conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.setReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.net, lingerBytes) // fails at the latest then
}

// nothingAllowed reports whether a client without a token may do nothing.
func nothingAllowed(s *auth.State) bool {
	return s.Mode() == enforce && !s.Anonymous.AllowOnAny(^auth.Verbs(0))
}

// isStranger reports whether the client may do nothing because it is nobody.
func (c *conn) isStranger() bool {
	return c.who.principal.IsAnonymous() && nothingAllowed(c.who.state)
}

// refuse replies to a command that the client may not do. It has no word of its own: there are
// clients that take any word that they do not know for success, and a put would be lost.
func (c *conn) refuse() {
	c.identify(c.server.Access.State())
	c.say(internalError)
	c.said = "" // the denial is recorded by itself
	if c.isStranger() {
		c.who.tries++
		c.who.refused = c.who.tries >= strangerTries
	}
}

// complaints are warnings that any client can cause, so they are logged rarely.
type complaints struct {
	log *slog.Logger

	mu     sync.Mutex
	next   time.Time // when the next one is logged
	hidden int       // since the last one
}

// Warn logs a message, unless one was logged a moment ago.
func (c *complaints) Warn(message string, args ...any) {
	c.mu.Lock()
	hidden, now := c.hidden, time.Now()
	if c.hidden++; now.Before(c.next) {
		c.mu.Unlock()
		return
	}
	c.hidden, c.next = 0, now.Add(complainEvery)
	c.mu.Unlock()
	c.log.Warn(message, append(args, "others_not_logged", hidden)...)
}
