package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	"tarry/internal/certs"
)

// TokenOf returns the id of the token that a client's certificate names, and until when the
// certificate is valid. It is empty without TLS, without a certificate that was verified, and
// for one that names no token.
//
// The cluster in the name must be that of the authority which signed it, so it is one of tarry
// cert ca: another authority that clients are trusted by makes no principals.
func TokenOf(s *tls.ConnectionState) (id string, until time.Time) {
	if s == nil || len(s.VerifiedChains) == 0 {
		return "", time.Time{}
	}
	leaf := s.VerifiedChains[0][0]
	holder, err := certs.IdentityOf(leaf)
	if err != nil || holder.Role != certs.RoleToken {
		return "", time.Time{}
	}
	authority := certs.Identity{Cluster: holder.Cluster, Role: certs.RoleCA}
	if !slices.ContainsFunc(s.VerifiedChains, func(chain []*x509.Certificate) bool {
		signer, err := certs.IdentityOf(chain[len(chain)-1])
		return err == nil && signer == authority
	}) {
		return "", time.Time{}
	}
	return holder.Name, leaf.NotAfter
}
