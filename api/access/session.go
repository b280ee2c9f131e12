package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"tarry/api/audit"
	"tarry/auth"
	"tarry/job"
)

// A session of the dashboard is a cookie that has the token, sealed with a key that follows from
// the hash that the state has of it. With each request it is opened, and the token is looked at
// like any other. So:
//
//   - Every node that has the token can open the session, and no node remembers it.
//   - A token that is revoked or rotated, or that has ended, takes its sessions with it.
//   - Who steals the cookie has neither the token nor a session that lasts longer: both need the
//     hash, which only the nodes have.
//   - Who steals the state, such as a backup, can make no session: that needs the token.
//
// A cookie that is only signed with the hash would be shorter, but without the last property:
// who may make a backup could be everybody. A list of sessions in the state would be a write
// for each sign-in.

// SessionTime is how long a session lasts.
const SessionTime = 12 * time.Hour

const (
	// sessionPurpose binds the key to this use and this format.
	sessionPurpose = "tarry dashboard session 1"
	sessionKey     = 32 // bytes
	sessionEnds    = 8  // bytes, in front of the token
	// maxSession bounds the text of a session, far above what it has.
	maxSession = 1 << 10
)

// sessionEncoding refuses texts of which another one has the same bytes.
var sessionEncoding = base64.RawURLEncoding.Strict()

// sessionSeal returns the cipher of the sessions of a token by its hash.
func sessionSeal(hash []byte) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, hash, nil, sessionPurpose, sessionKey)
	if err != nil {
		panic(err) // of a length that is too large
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // of another length
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // of a block of another size
	}
	return seal
}

// newSession returns the session of a token: ID.SEALED.
func newSession(secret auth.Secret, endsMS int64) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(endsMS))
	plain = append(plain, secret.Text()...)
	sealed := sessionSeal(secret.Hash()).Seal(nil, nil, plain, []byte(secret.ID()))
	return secret.ID() + "." + sessionEncoding.EncodeToString(sealed)
}

// openSession returns the token of a session. An error is auth.ErrUnknown, also for what is no
// session, or auth.ErrExpired.
func openSession(s *auth.State, session string, nowMS int64) (auth.Secret, error) {
	id, text, _ := strings.Cut(session, ".")
	t := s.Token(id)
	if t == nil || len(session) > maxSession {
		return auth.Secret{}, auth.ErrUnknown
	}
	sealed, err := sessionEncoding.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which it passes over
		return auth.Secret{}, auth.ErrUnknown
	}
	for _, hash := range [][]byte{t.Hash, t.OldHash} {
		if len(hash) != sha256.Size {
			continue
		}
		plain, err := sessionSeal(hash).Open(nil, nil, sealed, []byte(id))
		if err != nil || len(plain) < sessionEnds {
			continue
		}
		if nowMS >= int64(binary.BigEndian.Uint64(plain)) {
			return auth.Secret{}, auth.ErrExpired
		}
		secret, err := auth.Parse(string(plain[sessionEnds:]))
		if err != nil {
			return auth.Secret{}, auth.ErrUnknown
		}
		if _, err := s.Authenticate(secret, nowMS); err != nil {
			return auth.Secret{}, err
		}
		return secret, nil
	}
	return auth.Secret{}, auth.ErrUnknown
}

const (
	// signInBurst is how many sign-ins of one address may fail at once, and signInEvery how
	// often one may after that. Nobody guesses 256 random bits: this bounds how many lines guesses
	// leave in the logs. What is asked at the leader for them is bounded by itself.
	signInBurst = 10
	signInEvery = 6 * time.Second
)

const (
	callSignIn  = "POST /ui/signin"
	callSignOut = "POST /ui/signout"
	// verbSignIn is the verb of metrics for sign-ins that fail.
	verbSignIn = "sign_in"
)

// SignIn makes a session of the dashboard for the holder of a token. remote is its address. An
// error is for the client, and does not tell which tokens there are.
func (c *Control) SignIn(ctx context.Context, token, remote string) (session, id string, err error) {
	if err := c.AwaitReady(ctx); err != nil {
		return "", "", err
	}
	record := audit.Record{Remote: remote, Via: viaDashboard, Call: callSignIn, Outcome: audit.Denied}
	secret, err := auth.Parse(strings.TrimSpace(token))
	if err != nil {
		e := job.Errorf(CodeUnauthorized, "this is not a token of Tarry, which begins with tarry_")
		if errors.Is(err, auth.ErrMistyped) {
			e = job.Errorf(CodeUnauthorized, "the token is mistyped or cut short")
		}
		return "", "", c.signInFailed(record, "not_a_token", e)
	}
	record.Resource, record.Claimed = "token "+secret.ID(), secret.ID()
	p, err := c.Of(ctx, secret, remote, true)
	switch {
	case errors.Is(err, auth.ErrUnknown):
		return "", "", c.signInFailed(record, auth.UnknownToken.String(), notAccepted())
	case errors.Is(err, auth.ErrExpired):
		return "", "", c.signInFailed(record, auth.ExpiredToken.String(), notAccepted())
	case err != nil: // nobody knows
		return "", "", err
	}
	record.Principal, record.Claimed, record.Outcome = p.TokenID(), "", audit.Done
	c.audit.Add(record)
	return newSession(secret, time.Now().Add(SessionTime).UnixMilli()), secret.ID(), nil
}

// signInFailed counts and records a sign-in that failed, and returns the error of it. Those of an
// address that fail too often are refused without a record. They keep no one out whose token is
// accepted, who may be behind the same proxy.
func (c *Control) signInFailed(record audit.Record, reason string, e *job.Error) error {
	if !c.signIns.Take(audit.Network(record.Remote), time.Now()) {
		c.denied.WithLabelValues(verbSignIn, "too_many").Inc()
		e = job.Errorf(job.CodeOverloaded, "the token is not accepted, and too many sign-ins from this address have failed; try again in %d s", int(signInEvery.Seconds()))
		e.RetryAfter = signInEvery
		return e
	}
	c.denied.WithLabelValues(verbSignIn, reason).Inc()
	record.Reason = reason
	c.audit.Add(record)
	return e
}

// notAccepted is the same for each token that is not accepted.
func notAccepted() *job.Error {
	return job.Errorf(CodeUnauthorized, "the token is not known, was revoked or has ended")
}

// Session returns the token of a session. An error with CodeUnauthorized says that there is
// none any more; any other that this is not known at present.
func (c *Control) Session(ctx context.Context, session, remote string) (token string, err error) {
	secret, err := openSession(c.State(), session, now())
	if errors.Is(err, auth.ErrUnknown) {
		// This node may be behind: it has just started, or the token was made a moment ago.
		if err := c.AwaitReady(ctx); err != nil {
			return "", err
		}
		err = c.askFor(ctx, sha256.Sum256([]byte(session)), remote, func() (err error) {
			secret, err = openSession(c.State(), session, now())
			return err
		})
	}
	if job.CodeOf(err) == job.CodeNotApplied && !errors.Is(err, errAskedTooOften) { // else people sign in again
		return "", err
	}
	if err != nil {
		return "", job.Errorf(CodeUnauthorized, "the session has ended, or its token is not accepted any more")
	}
	return secret.Text(), nil
}

// SignOut records the end of a session. The session itself is forgotten by the browser: a copy
// of the cookie would be accepted until it ends.
func (c *Control) SignOut(session, remote string) {
	if secret, err := openSession(c.State(), session, now()); err == nil {
		c.audit.Add(audit.Record{Principal: secret.ID(), Remote: remote, Via: viaDashboard, Call: callSignOut, Outcome: audit.Done})
	}
}

// viaDashboard is how the audit log names the dashboard.
const viaDashboard = "dashboard"
