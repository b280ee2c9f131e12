package nodetls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"tarry/internal/certs"
	"tarry/internal/hook"
)

// ErrRefused is wrapped by the errors of a certificate that is not that of the right node.
var ErrRefused = errors.New("the other end's certificate is refused")

// Config is how a node's connections to other nodes are secured. The zero value is not at
// all.
type Config struct {
	Mode     Mode
	Identity *Identity // nil only with Off
}

// Identity is who this node is, and who the other nodes are.
type Identity struct {
	source *certs.Source
}

// Open reads the certificate of the node with this id and the authorities of its cluster.
func Open(files certs.Files, nodeID string) (*Identity, error) {
	s, err := certs.Open(files, func(l *certs.Loaded) error { return own(l, nodeID) })
	if err != nil {
		return nil, err
	}
	return &Identity{source: s}, nil
}

// Source returns the certificate's, which may be reloaded at any time.
func (i *Identity) Source() *certs.Source { return i.source }

// own returns an error unless the other nodes will accept this node's certificate, and
// they use the same authorities.
func own(l *certs.Loaded, nodeID string) error {
	if l.Roots == nil {
		return errors.New("a file with the cluster's authority is needed")
	}
	leaf := l.Certificate.Leaf
	id, err := certs.IdentityOf(leaf)
	if err != nil {
		return err
	}
	if id.Role != certs.RoleNode || id.Name != nodeID {
		return fmt.Errorf("this is node %q, and the certificate is that of %s", nodeID, id)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := verifyChain(l, leaf, chainOf(l.Certificate), usage); err != nil {
			return fmt.Errorf("the certificate of this node: %w", err)
		}
	}
	return nil
}

// chainOf returns the certificates that a node sends after its own.
func chainOf(c tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		if parsed, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(parsed)
		}
	}
	return pool
}

func verifyChain(l *certs.Loaded, leaf *x509.Certificate, chain *x509.CertPool, usage x509.ExtKeyUsage) error {
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: l.Roots, Intermediates: chain, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// verify returns the id of the node at the other end, which must be want unless that is empty.
func (i *Identity) verify(s tls.ConnectionState, usage x509.ExtKeyUsage, want string) (string, error) {
	l := i.source.Current()
	if s.Version < tls.VersionTLS13 || s.NegotiatedProtocol != protocol {
		return "", fmt.Errorf("%w: it speaks protocol %.40q, not %q over TLS 1.3", ErrRefused, s.NegotiatedProtocol, protocol)
	}
	if len(s.PeerCertificates) == 0 {
		return "", fmt.Errorf("%w: there is none", ErrRefused)
	}
	leaf, chain := s.PeerCertificates[0], x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		chain.AddCert(c)
	}
	if err := verifyChain(l, leaf, chain, usage); err != nil && !hook.Mutant(hook.AnyAuthority) {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	id, err := certs.IdentityOf(leaf)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	us, err := certs.IdentityOf(l.Certificate.Leaf)
	if err != nil {
		return "", err
	}
	switch {
	case id.Role != certs.RoleNode:
		return "", fmt.Errorf("%w: %s is no node", ErrRefused, id)
	case id.Cluster != us.Cluster:
		return "", fmt.Errorf("%w: %s is not of cluster %s", ErrRefused, id, us.Cluster)
	case want != "" && id.Name != want:
		return "", fmt.Errorf("%w: node %q was dialed, and %s replied", ErrRefused, want, id)
	}
	return id.Name, nil
}
