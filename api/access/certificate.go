package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"tarry/auth"
	"tarry/job"
)

// Certificate is the client certificate of a connection, as far as it names a token. It stands
// for the token and not for its text: it is good for what the token may do now, also after the
// text was rotated, and for nothing once the token is revoked or has ended. The zero value names
// none.
type Certificate struct {
	TokenID string
	EndsMS  int64 // it is not valid any more
}

// CertificateOf returns the certificate that names a token, and is valid until an instant.
func CertificateOf(tokenID string, until time.Time) Certificate {
	if tokenID == "" {
		return Certificate{}
	}
	return Certificate{TokenID: tokenID, EndsMS: until.UnixMilli()}
}

// authenticate returns the token of a certificate by a state. An error is auth.ErrUnknown or
// auth.ErrExpired.
func (c Certificate) authenticate(s *auth.State, nowMS int64) (*auth.Token, error) {
	t := s.Token(c.TokenID)
	switch {
	case t == nil:
		return nil, auth.ErrUnknown
	case t.Expired(nowMS) || nowMS >= c.EndsMS:
		return nil, auth.ErrExpired
	}
	return t, nil
}

// Principal returns who has the certificate by a state; nobody if its token is not accepted.
func (c Certificate) Principal(s *auth.State) auth.Principal {
	if t, err := c.authenticate(s, now()); err == nil {
		return auth.TokenPrincipal(t.Id)
	}
	return auth.Principal{}
}

// errTwoCredentials is returned for a request with a certificate that names a token and the text
// of one, also of the same: which of them counts would depend on who looks.
var errTwoCredentials = job.Errorf(job.CodeInvalid, "the client certificate names a token, and Authorization is given, too; send one of them").In("Authorization")

// OfCertificate is Of for a certificate that names a token.
func (i *Identity) OfCertificate(ctx context.Context, c Certificate, remote string, ask bool) (auth.Principal, error) {
	t, err := c.authenticate(i.source.Auth(), now())
	if ask && errors.Is(err, auth.ErrUnknown) {
		err = i.askFor(ctx, sha256.Sum256([]byte("certificate "+c.TokenID)), remote, func() (err error) {
			t, err = c.authenticate(i.source.Auth(), now())
			return err
		})
	}
	if err != nil {
		return auth.Principal{}, err
	}
	return auth.TokenPrincipal(t.Id), nil
}
