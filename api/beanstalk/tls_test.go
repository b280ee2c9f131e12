package beanstalk_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/beanstalk"
	"tarry/api/clienttls"
	"tarry/auth"
	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// secure lets the clients of g speak TLS with another port of its server. Those with a
// certificate of the authority are asked for it.
func (g *guarded) secure(a *certstest.Authority) {
	g.Helper()
	files := a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	require.NoError(g, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(g, err)
	o := g.options
	g.ofTLS = prometheus.NewRegistry()
	o.Registry = g.ofTLS
	g.addr = serveAs(g, clienttls.Listen(tcp, clienttls.Options{Mode: clienttls.Require, Config: func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots}
	}}), o, g.bound)
	g.tls = &tls.Config{RootCAs: roots}
}

// show makes the next clients show a certificate that names a token.
func (g *guarded) show(a *certstest.Authority, id string) {
	g.Helper()
	files := a.Issue(certs.RoleToken, id, time.Hour)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	require.NoError(g, err)
	g.tls = &tls.Config{RootCAs: g.tls.RootCAs, Certificates: []tls.Certificate{pair}}
}

// A connection with TLS ends with its token, too, whether it waits in a reserve or not.
func TestARevokedTokenEndsConnectionsWithTLS(t *testing.T) {
	g := guard(t)
	g.secure(certstest.New(t, "orders"))
	g.put("worker", 0, "mail", "consume")
	g.mode(enforce)
	idle, waits := g.as("worker"), g.as("worker")
	waits.say("watch mail")
	g.reserves(waits)
	require.Equal(t, "WATCHING 2", idle.say("watch mail"))
	g.revoke("worker")
	require.Equal(t, "INTERNAL_ERROR", waits.reply())
	waits.ends()
	idle.ends()
	bad := g.dial()
	require.Equal(t, "UNAUTHORIZED", bad.say("auth "+secretOf(t, "worker").Text()))
	bad.ends()
}

// A certificate that names a token acts with it, and its connection ends with it.
func TestAClientCertificateActsWithItsToken(t *testing.T) {
	g, a := guard(t), certstest.New(t, "orders")
	g.put("listener", 0, "sms", "add")
	g.bound = func() (auth.Secret, error) { return secretOf(t, "listener"), nil }
	g.secure(a)
	g.put("worker", 0, "mail", "add consume")
	g.put("other", 0, "sms", "add")
	g.mode(enforce)
	g.show(a, "worker")
	c, waits := g.dial(), g.dial()
	require.Equal(t, "USING mail", c.say("use mail"))
	require.Equal(t, "INSERTED", strings.Fields(c.say("put 0 0 60 1\r\nx"))[0])
	require.Equal(t, "USING sms", c.say("use sms"))
	require.Equal(t, "INTERNAL_ERROR", c.say("put 0 0 60 1\r\nx"), "the token of the listener is not the one of the certificate")
	require.Equal(t, "WATCHING 2", waits.say("watch mail"))
	require.Equal(t, "WATCHING 1", waits.say("ignore default"))
	require.Contains(t, waits.say("reserve"), "RESERVED")
	g.reserves(waits)

	replaced := g.dial()
	require.Equal(t, "AUTHORIZED", replaced.say("auth "+secretOf(t, "other").Text()))
	require.Equal(t, "USING sms", replaced.say("use sms"))
	require.Contains(t, replaced.say("put 0 0 60 1\r\nx"), "INSERTED")

	g.revoke("worker")
	require.Equal(t, "INTERNAL_ERROR", waits.reply())
	waits.ends()
	c.ends()
	require.Contains(t, replaced.say("put 0 0 60 1\r\nx"), "INSERTED", "it acts with another token")
	bad := g.dial()
	require.Equal(t, "UNAUTHORIZED", bad.say("list-tubes"))
	bad.ends()
	saved := g.dial()
	require.Equal(t, "AUTHORIZED", saved.say("auth "+secretOf(t, "other").Text()), "what its certificate names counts no more")
	require.Equal(t, "USING sms", saved.say("use sms"))
	require.Contains(t, saved.say("put 0 0 60 1\r\nx"), "INSERTED")
}

// A certificate that names no token of the cluster makes nobody less of a stranger.
func TestAStrangerWithACertificateIsCutOff(t *testing.T) {
	g, a := guard(t, func(o *beanstalk.Options) { o.StrangerTime = 50 * time.Millisecond }), certstest.New(t, "orders")
	g.secure(a)
	g.put("worker", 0, "mail", "add")
	g.mode(enforce)
	g.show(a, "nobody")
	g.dial().ends()
}

// A client that is slow to send its first command is no stranger if its certificate names a token.
func TestACertificateIsLookedAtBeforeTheFirstCommand(t *testing.T) {
	g, a := guard(t, func(o *beanstalk.Options) { o.StrangerTime = 50 * time.Millisecond }), certstest.New(t, "orders")
	g.secure(a)
	g.put("worker", 0, "mail", "add")
	g.mode(enforce)
	g.show(a, "worker")
	certificate := g.tls
	survives := func() bool {
		g.tls = certificate
		c := g.dial()
		if c.conn.(*tls.Conn).Handshake() != nil {
			return false // the machine was slow
		}
		g.tls = &tls.Config{RootCAs: certificate.RootCAs}
		g.dial().ends() // it came later
		require.NoError(t, c.conn.SetDeadline(time.Now().Add(patience)))
		if _, err := io.WriteString(c.conn, "use mail\r\n"); err != nil {
			return false
		}
		line, err := c.in.ReadString('\n')
		return err == nil && line == "USING mail\r\n"
	}
	for end := time.Now().Add(patience); !survives(); {
		require.True(t, time.Now().Before(end), "it is taken for a stranger")
	}
}
