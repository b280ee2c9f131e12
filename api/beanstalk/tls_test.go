package beanstalk_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/clienttls"
	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// A connection with TLS ends with its token, too, whether it waits in a reserve or not.
func TestARevokedTokenEndsConnectionsWithTLS(t *testing.T) {
	g := guard(t)
	a := certstest.New(t, "orders")
	files := a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := g.options
	o.Registry = nil
	g.addr = serveAs(t, clienttls.Listen(tcp, clienttls.Options{Mode: clienttls.Require, Config: func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pair}}
	}}), o, nil)
	g.tls = &tls.Config{RootCAs: roots}
	g.put("worker", 0, "mail", "consume")
	g.mode(enforce)
	idle, waits := g.as("worker"), g.as("worker")
	waits.say("watch mail")
	waits.send("reserve")
	require.Equal(t, "WATCHING 2", idle.say("watch mail"))
	g.revoke("worker")
	require.Equal(t, "INTERNAL_ERROR", waits.reply())
	waits.ends()
	idle.ends()
	bad := g.dial()
	require.Equal(t, "UNAUTHORIZED", bad.say("auth "+secretOf(t, "worker").Text()))
	bad.ends()
}
