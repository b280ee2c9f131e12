package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// backdate is how far before its making a certificate is valid, for machines whose
// clocks are behind.
const backdate = time.Hour

// maxHosts bounds the DNS names and addresses of one certificate.
const maxHosts = 100

// Authority signs certificates of one cluster.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
	id   Identity
}

// Cluster returns the name of the cluster.
func (a *Authority) Cluster() string { return a.id.Cluster }

// NewAuthority makes an authority for a cluster, valid until end. It returns its key,
// too, for a file.
func NewAuthority(cluster string, now, end time.Time) (*Authority, crypto.Signer, error) {
	id := Identity{Cluster: cluster, Role: RoleCA}
	if err := id.check(); err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	t, err := template(id, nil, now, end)
	if err != nil {
		return nil, nil, err
	}
	t.IsCA, t.MaxPathLenZero = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	c, err := sign(t, t, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	return &Authority{Cert: c, key: key, id: id}, key, nil
}

// asAuthority returns the authority of a certificate and its key.
func asAuthority(c *x509.Certificate, key crypto.Signer) (*Authority, error) {
	id, err := IdentityOf(c)
	if err != nil {
		return nil, err
	}
	if id.Role != RoleCA || !c.IsCA {
		return nil, fmt.Errorf("%s is not a certificate authority", id)
	}
	if !sameKey(c, key) {
		return nil, errors.New("the key is not that of the certificate")
	}
	return &Authority{Cert: c, key: key, id: id}, nil
}

// Issue makes a key and its certificate for a holder of the authority's cluster, with
// hosts as its DNS names and IP addresses. It ends with the authority at the latest.
func (a *Authority) Issue(role Role, name string, hosts []string, now, end time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	c, err := a.issue(Identity{Cluster: a.id.Cluster, Role: role, Name: name}, hosts, key.Public(), now, end)
	return c, key, err
}

// Renew makes a certificate for the same holder, hosts and key as old, which this authority
// must have signed; it may have ended. Otherwise whoever hands in a file could be anybody.
func (a *Authority) Renew(old *x509.Certificate, now, end time.Time) (*x509.Certificate, error) {
	id, err := IdentityOf(old)
	if err != nil {
		return nil, err
	}
	if id.Cluster != a.id.Cluster {
		return nil, fmt.Errorf("the certificate is of cluster %s and the authority of cluster %s", id.Cluster, a.id.Cluster)
	}
	if err := old.CheckSignatureFrom(a.Cert); err != nil {
		return nil, fmt.Errorf("this authority has not signed it: %w", err)
	}
	hosts := slices.Clone(old.DNSNames)
	for _, ip := range old.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return a.issue(id, hosts, old.PublicKey, now, end)
}

func (a *Authority) issue(id Identity, hosts []string, key crypto.PublicKey, now, end time.Time) (*x509.Certificate, error) {
	if id.Role == RoleCA {
		return nil, errors.New("an authority signs no other authority")
	}
	if err := id.check(); err != nil {
		return nil, err
	}
	if end.After(a.Cert.NotAfter) {
		end = a.Cert.NotAfter
	}
	t, err := template(id, hosts, now, end)
	if err != nil {
		return nil, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	switch id.Role {
	case RoleNode: // it dials and accepts
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	case RoleServer:
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case RoleClient, RoleToken:
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return sign(t, a.Cert, key, a.key)
}

func template(id Identity, hosts []string, now, end time.Time) (*x509.Certificate, error) {
	if !end.After(now) {
		return nil, fmt.Errorf("the certificate would end at %s, which is past", end.UTC().Format(time.RFC3339))
	}
	if len(hosts) > maxHosts {
		return nil, fmt.Errorf("a certificate takes %d hosts, got %d", maxHosts, len(hosts))
	}
	t := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Tarry cluster " + id.Cluster}, CommonName: strings.TrimSpace(string(id.Role) + " " + id.Name)},
		NotBefore: now.Add(-backdate), NotAfter: end, BasicConstraintsValid: true,
	}
	t.URIs = append(t.URIs, id.uri())
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
			continue
		}
		if err := checkHost(h); err != nil {
			return nil, err
		}
		t.DNSNames = append(t.DNSNames, h)
	}
	return t, nil
}

// checkHost returns an error unless h is a DNS name, which may begin with "*.".
func checkHost(h string) error {
	rest := strings.TrimPrefix(h, "*.")
	valid := len(rest) >= 1 && len(h) <= 253
	for label := range strings.SplitSeq(rest, ".") {
		valid = valid && len(label) >= 1 && len(label) <= 63
	}
	for _, c := range rest {
		valid = valid && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c))
	}
	if !valid {
		return fmt.Errorf("host %.80q is neither an IP address nor a DNS name without a port", h)
	}
	return nil
}

func sign(t, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key, signer) // with a random serial number
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// sameKey reports whether key is the private half of the certificate's.
func sameKey(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(key.Public())
}
