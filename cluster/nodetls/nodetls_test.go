package nodetls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

// unchecked is the identity of who does not look at its own certificate first.
func unchecked(t *testing.T, files certs.Files) *Identity {
	t.Helper()
	s, err := certs.Open(files, nil)
	require.NoError(t, err)
	return &Identity{source: s}
}

// outcome is how the two ends of a connection saw it.
type outcome struct {
	dialer, acceptor error
	caller           string // the id that the acceptor was shown
	secured          *tls.Conn
}

// meet connects a dialer, which means node want, to an acceptor.
func meet(t *testing.T, dialer, acceptor *Identity, want string) outcome {
	t.Helper()
	return meetBy(t, func(ctx context.Context, c net.Conn) (*tls.Conn, error) { return dialer.Dial(ctx, c, want) }, acceptor)
}

// careless dials without a look at the other end's certificate.
func careless(i *Identity) func(context.Context, net.Conn) (*tls.Conn, error) {
	return func(ctx context.Context, c net.Conn) (*tls.Conn, error) {
		config := i.config(x509.ExtKeyUsageServerAuth, "")
		config.VerifyConnection = nil
		t := tls.Client(c, config)
		return t, t.HandshakeContext(ctx)
	}
}

func meetBy(t *testing.T, dial func(context.Context, net.Conn) (*tls.Conn, error), acceptor *Identity) (o outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		c, err := l.Accept()
		if err != nil {
			o.acceptor = err
			return
		}
		defer c.Close()
		var first [1]byte
		if _, o.acceptor = io.ReadFull(c, first[:]); o.acceptor != nil {
			return
		}
		if !Begins(first[0]) {
			o.acceptor = errors.New("it is not TLS")
			return
		}
		var s *tls.Conn
		if s, o.caller, o.acceptor = acceptor.Accept(ctx, c, first[:]); o.acceptor == nil {
			_, o.acceptor = s.Write([]byte("!"))
		}
		io.Copy(io.Discard, c)
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	o.secured, o.dialer = dial(ctx, c)
	if o.dialer == nil {
		_, o.dialer = io.ReadFull(o.secured, make([]byte, 1)) // the acceptor judges last
	}
	c.Close()
	<-accepted
	return o
}

func TestNodesOfOneClusterKnowEachOther(t *testing.T) {
	a := certstest.New(t, "orders")
	one, err := Open(a.Node("n1"), "n1")
	require.NoError(t, err)
	two, err := Open(a.Node("n 2/x"), "n 2/x")
	require.NoError(t, err)
	o := meet(t, one, two, "n 2/x")
	require.NoError(t, o.dialer)
	require.NoError(t, o.acceptor)
	require.Equal(t, "n1", o.caller)
	require.NotNil(t, TCP(o.secured))
	require.False(t, o.secured.ConnectionState().DidResume)
}

// signed makes a certificate that package certs would not make.
func signed(t *testing.T, a *certstest.Authority, uri string, usages ...x509.ExtKeyUsage) certs.Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	u, err := url.Parse(uri)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{u}, ExtKeyUsage: usages,
	}, a.Cert, key.Public(), a.Key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	f := certs.Files{Cert: filepath.Join(t.TempDir(), "x.crt"), Key: filepath.Join(t.TempDir(), "x.key"), CA: a.CA}
	require.NoError(t, certs.WritePair(f.Cert, f.Key, leaf, key))
	return f
}

// Each certificate is refused at both ends, and the other end gets an alert.
func TestACertificateThatIsNotTheNodesIsRefused(t *testing.T) {
	a, other, twin := certstest.New(t, "orders"), certstest.New(t, "payments"), certstest.New(t, "orders")
	good, err := Open(a.Node("n1"), "n1")
	require.NoError(t, err)
	withCA := func(f certs.Files) certs.Files { f.CA = a.CA; return f } // so that it trusts the good node
	for name, c := range map[string]struct {
		files certs.Files
		// only: whether it is wrong for one end only
		onlyDialed, onlyDialing bool
		says                    string
	}{
		"another authority":          {files: withCA(twin.Node("n2")), says: "unknown authority"},
		"another cluster":            {files: signed(t, a, "tarry://payments/node/n2", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), says: "not of cluster orders"},
		"another cluster's":          {files: withCA(other.Node("n2")), says: "unknown authority"},
		"a client's":                 {files: signed(t, a, "tarry://orders/client/n2", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), says: "is no node"},
		"the authority's name":       {files: signed(t, a, "tarry://orders/ca", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), says: "is no node"},
		"no name":                    {files: signed(t, a, "https://orders/node/n2", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), says: "does not name its holder"},
		"only good for a server":     {files: signed(t, a, "tarry://orders/node/n2", x509.ExtKeyUsageServerAuth), onlyDialing: true, says: "incompatible key usage"},
		"only good for a client":     {files: signed(t, a, "tarry://orders/node/n2", x509.ExtKeyUsageClientAuth), onlyDialed: true, says: "incompatible key usage"},
		"good for nothing in TLS":    {files: signed(t, a, "tarry://orders/node/n2", x509.ExtKeyUsageCodeSigning), says: "incompatible key usage"},
		"that has ended":             {files: a.Issue(certs.RoleNode, "n2", -time.Hour), says: "expired"},
		"of another node than meant": {files: a.Node("n3"), onlyDialed: true, says: `node "n2" was dialed`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := unchecked(t, c.files)
			if o := meet(t, good, bad, "n2"); c.onlyDialing {
				require.NoError(t, o.dialer)
			} else {
				require.ErrorIs(t, o.dialer, ErrRefused)
				require.ErrorContains(t, o.dialer, c.says)
				require.Error(t, o.acceptor)
				require.True(t, Refused(o.acceptor), "the acceptor got no alert: %v", o.acceptor)
			}
			if o := meetBy(t, careless(bad), good); c.onlyDialed {
				require.NoError(t, o.dialer)
			} else {
				require.ErrorIs(t, o.acceptor, ErrRefused)
				require.ErrorContains(t, o.acceptor, c.says)
				require.Error(t, o.dialer)
				require.True(t, Refused(o.dialer), "the dialer got no alert: %v", o.dialer)
			}
		})
	}
}

func TestTheCallerMustHaveACertificateAndSpeakTheProtocol(t *testing.T) {
	a := certstest.New(t, "orders")
	good, err := Open(a.Node("n1"), "n1")
	require.NoError(t, err)
	pair := good.source.Current().Certificate
	for name, config := range map[string]*tls.Config{
		"no certificate": {NextProtos: []string{protocol}},
		"TLS 1.2":        {NextProtos: []string{protocol}, Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12},
		"no protocol":    {Certificates: []tls.Certificate{pair}},
		"HTTP/2":         {Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}},
	} {
		t.Run(name, func(t *testing.T) {
			config.InsecureSkipVerify = true
			near, far := net.Pipe()
			defer near.Close()
			client := make(chan error, 1)
			go func() {
				defer far.Close()
				c := tls.Client(far, config)
				err := c.Handshake()
				if err == nil {
					_, err = c.Read(make([]byte, 1))
				}
				client <- err
			}()
			_, _, err := good.Accept(t.Context(), near, nil)
			require.Error(t, err)
			require.ErrorContains(t, <-client, "remote error")
		})
	}
}

func TestANodeStartsOnlyWithItsOwnCertificate(t *testing.T) {
	a, twin := certstest.New(t, "orders"), certstest.New(t, "orders")
	files := a.Node("n1")
	_, err := Open(files, "n2")
	require.ErrorContains(t, err, `this is node "n2"`)
	_, err = Open(a.Issue(certs.RoleClient, "n1", time.Hour), "n1")
	require.ErrorContains(t, err, "tarry://orders/client/n1")
	_, err = Open(a.Issue(certs.RoleNode, "n1", -time.Hour), "n1")
	require.ErrorContains(t, err, "expired")
	foreign := files
	foreign.CA = twin.CA
	_, err = Open(foreign, "n1")
	require.ErrorContains(t, err, "unknown authority")
	foreign.CA = ""
	_, err = Open(foreign, "n1")
	require.Error(t, err)
}

func TestModesHaveNames(t *testing.T) {
	for i, name := range []string{"off", "accept", "prefer", "require"} {
		var m Mode
		require.NoError(t, m.UnmarshalText([]byte(name)))
		require.Equal(t, Mode(i), m)
		require.Equal(t, name, m.String())
	}
	require.Error(t, new(Mode).UnmarshalText([]byte("on")))
}
