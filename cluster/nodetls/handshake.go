package nodetls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"

	"tarry/internal/replay"
)

const (
	// protocol is negotiated with ALPN, so that a certificate and port of something else
	// are never mistaken for a node's.
	protocol = "tarry/1"
	// handshakeRecord is the first byte that a TLS client sends.
	handshakeRecord = 0x16
)

// Begins reports whether a connection whose first byte is b speaks TLS.
func Begins(b byte) bool { return b == handshakeRecord }

// Dial makes TLS of a connection to a node and returns it when the other end has proved to
// be that node. Nothing is closed after an error. ctx ends it.
func (i *Identity) Dial(ctx context.Context, c net.Conn, nodeID string) (*tls.Conn, error) {
	if nodeID == "" {
		return nil, errors.New("no node is named that should be reached")
	}
	t := tls.Client(c, i.config(x509.ExtKeyUsageServerAuth, nodeID))
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS with node %s: %w", nodeID, err)
	}
	return t, nil
}

// Accept makes TLS of an accepted connection, of which read has been read already. It
// returns the id that the caller has proved to have. Nothing is closed after an error.
func (i *Identity) Accept(ctx context.Context, c net.Conn, read []byte) (*tls.Conn, string, error) {
	t := tls.Server(replay.New(c, read), i.config(x509.ExtKeyUsageClientAuth, ""))
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, "", fmt.Errorf("TLS: %w", err)
	}
	nodeID, err := i.verify(t.ConnectionState(), x509.ExtKeyUsageClientAuth, "")
	return t, nodeID, err
}

// config is made for each connection, because the certificate may be replaced. The standard
// verification is replaced by verify, which checks the same and the node instead of a
// DNS name. A resumed session would skip it, so there is none.
func (i *Identity) config(usage x509.ExtKeyUsage, want string) *tls.Config {
	l := i.source.Current()
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{l.Certificate},
		NextProtos:             []string{protocol},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := i.verify(s, usage, want)
			return err
		},
	}
}

// TCP returns the TCP connection below c, or nil. Options of a socket must be set on it:
// on a tls.Conn they would be skipped without a word.
func TCP(c net.Conn) *net.TCPConn {
	for {
		switch below := c.(type) {
		case *net.TCPConn:
			return below
		case interface{ NetConn() net.Conn }:
			c = below.NetConn()
		default:
			return nil
		}
	}
}

// Refused reports whether the other end of a TLS connection has refused this one, by an
// alert or because it does not speak TLS.
func Refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" || errors.Is(err, io.EOF)
}
