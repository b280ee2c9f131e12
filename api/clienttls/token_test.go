package clienttls

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// forged signs a certificate for a URI with an authority, whatever it says.
func forged(t *testing.T, a *certstest.Authority, uri string) *x509.Certificate {
	u, err := url.Parse(uri)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{u}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, a.Cert, a.Key.Public(), a.Key)
	require.NoError(t, err)
	c, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return c
}

// shown is the state of a connection whose client shows a certificate, as crypto/tls makes it.
func shown(t *testing.T, c *x509.Certificate, authorities ...*certstest.Authority) *tls.ConnectionState {
	roots := x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a.Cert)
	}
	chains, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: chains}
}

func TestTheTokenOfACertificate(t *testing.T) {
	orders, other := certstest.New(t, "orders"), certstest.New(t, "other")
	issued := func(a *certstest.Authority, role certs.Role) *x509.Certificate {
		c, _, err := a.Authority.Issue(role, "shop", nil, time.Now(), time.Now().Add(time.Hour))
		require.NoError(t, err)
		return c
	}
	token := issued(orders, certs.RoleToken)
	id, until := TokenOf(shown(t, token, orders, other))
	require.Equal(t, "shop", id)
	require.Equal(t, token.NotAfter, until)
	id, _ = TokenOf(shown(t, forged(t, orders, "tarry://orders/token/shop"), orders))
	require.Equal(t, "shop", id)

	for name, s := range map[string]*tls.ConnectionState{
		"without TLS":                  nil,
		"without a certificate":        {},
		"one that was not verified":    {PeerCertificates: []*x509.Certificate{token}},
		"of a client":                  shown(t, issued(orders, certs.RoleClient), orders),
		"of a node":                    shown(t, issued(orders, certs.RoleNode), orders),
		"of a cluster with another CA": shown(t, forged(t, other, "tarry://orders/token/shop"), orders, other),
		"without an id":                shown(t, forged(t, orders, "tarry://orders/token/"), orders),
		"written differently":          shown(t, forged(t, orders, "tarry://orders/token/sho%70"), orders),
		"of another scheme":            shown(t, forged(t, orders, "https://orders/token/shop"), orders),
	} {
		id, until := TokenOf(s)
		require.Empty(t, id, name)
		require.Zero(t, until, name)
	}
}
