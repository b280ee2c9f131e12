package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// The port tells why a handshake failed, once, and not of clients that only come and go.
func TestAHandshakeThatFailsIsToldOnce(t *testing.T) {
	a := certstest.New(t, "orders")
	s, err := certs.Open(a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1"), nil)
	require.NoError(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	refused := make(chan error, 8)
	l := Listen(tcp, Options{Mode: Require, Refused: func(_ net.Addr, err error) { refused <- err }, Config: func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{s.Current().Certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	}})
	for _, c := range []struct {
		name   string
		client func(net.Conn)
		why    string // empty: nothing is reported
	}{
		{"no certificate", func(c net.Conn) {
			secure := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
			_ = secure.Handshake()
			_, err := secure.Read(make([]byte, 1))
			require.ErrorContains(t, err, "remote error: tls:")
		}, "client didn't provide a certificate"},
		{"another authority is trusted", func(c net.Conn) {
			require.Error(t, tls.Client(c, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}).Handshake())
		}, "remote error: tls:"},
		{"no TLS", func(c net.Conn) { c.Write([]byte{handshakeRecord, 'x', 'x', 'x', 'x', 'x'}) }, "tls: first record does not look like a TLS handshake"},
		{"it goes away", func(c net.Conn) { c.Write([]byte{handshakeRecord, 3, 1}) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			served := make(chan struct{})
			go func() {
				defer close(served)
				accepted, err := l.Accept()
				if err != nil {
					return
				}
				defer accepted.Close()
				for range 3 {
					if _, err := accepted.Read(make([]byte, 1)); err == nil {
						return
					}
				}
			}()
			conn, err := net.Dial("tcp", tcp.Addr().String())
			require.NoError(t, err)
			c.client(conn)
			conn.Close()
			<-served
			if c.why != "" {
				require.ErrorContains(t, <-refused, c.why)
			}
			require.Empty(t, refused)
		})
	}
}
