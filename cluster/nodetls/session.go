package nodetls

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"tarry/cluster/report"
)

// Session is an open connection, whose certificate may end or lose its authority while it
// is open. TLS checks it only in the beginning.
type Session struct {
	identity *Identity
	state    tls.ConnectionState
	usage    x509.ExtKeyUsage
	NodeID   string // of the other end
}

// DialedSession returns the session of a connection that Dial has returned for a node.
func (i *Identity) DialedSession(c *tls.Conn, nodeID string) *Session {
	return &Session{i, c.ConnectionState(), x509.ExtKeyUsageServerAuth, nodeID}
}

// AcceptedSession returns the session of a connection that Accept has returned.
func (i *Identity) AcceptedSession(c *tls.Conn, nodeID string) *Session {
	return &Session{i, c.ConnectionState(), x509.ExtKeyUsageClientAuth, nodeID}
}

// Check verifies the certificate of the other end again, now and with the authorities in
// use now.
func (s *Session) Check() error {
	_, err := s.identity.verify(s.state, s.usage, s.NodeID)
	return err
}

// Ends returns when the certificate of the other end does.
func (s *Session) Ends() time.Time { return s.state.PeerCertificates[0].NotAfter }

// ExpiryWarning is how long before its end a certificate is a reason to act.
const ExpiryWarning = 7 * 24 * time.Hour

// EndsSoon returns the problem with the certificate of a node; nil: there is none.
func EndsSoon(nodeID string, end, now time.Time) (p *report.Problem) {
	switch left := end.Sub(now); {
	case left > ExpiryWarning:
		return nil
	case left <= 0:
		p = report.NewProblem(report.CertificateEnded, nodeID, "the certificate of %s has ended: renew it (tarry cert renew)", nodeID)
	default:
		p = report.NewProblem(report.CertificateEnds, nodeID, "the certificate of %s ends at %s: renew it (tarry cert renew)", nodeID, end.UTC().Format(time.RFC3339))
	}
	p.AtMs = end.UnixMilli()
	return p
}
