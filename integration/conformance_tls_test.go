package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs the certificates of proxies and clients.
type authority struct {
	t      *testing.T
	signed tls.Certificate // its own
	pool   *x509.CertPool
	files  object // names of files in PEM, for the cases: ca, other_ca, cert, key
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.signed = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "the conformance cases"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pool.AddCert(a.signed.Leaf)
	other := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "somebody else"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	client := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "a client"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	require.NoError(t, err)
	a.files = object{
		"ca": a.file("ca.pem", "CERTIFICATE", a.signed.Certificate[0]), "other_ca": a.file("other.pem", "CERTIFICATE", other.Certificate[0]),
		"cert": a.file("client.pem", "CERTIFICATE", client.Certificate[0]), "key": a.file("client.key", "PRIVATE KEY", key),
	}
	return a
}

// server is what a proxy on the loopback address needs; mutual: it wants a certificate of clients.
func (a *authority) server(mutual bool) *tls.Config {
	own := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "a proxy"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	config := &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: a.pool}
	if mutual {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config
}

// sign makes a key and signs a certificate for it. Those of authorities sign themselves.
func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := template, any(key)
	if !template.IsCA {
		parent, signer = a.signed.Leaf, a.signed.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) file(name, kind string, der []byte) string {
	file := filepath.Join(a.t.TempDir(), name)
	require.NoError(a.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}
