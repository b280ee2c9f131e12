package clienttls

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/certs"
	"tarry/internal/certs/certstest"
)

const patience = time.Minute // ends a wait for what never happens

// port is a listener that echoes lines, with what its clients need.
func port(t testing.TB, mode Mode) (addr string, client *tls.Config) {
	t.Helper()
	a := certstest.New(t, "orders")
	s, err := certs.Open(a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1"), nil)
	require.NoError(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := Listen(tcp, Options{Mode: mode, Hint: "use TLS\n", Config: func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{s.Current().Certificate}}
	}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go echo(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	return tcp.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

func echo(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return
	}
	if StateOf(c) != nil {
		line = "secure " + line
	}
	io.WriteString(c, line)
}

func say(t *testing.T, c net.Conn, err error) string {
	t.Helper()
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(c, "hello\n")
	require.NoError(t, err)
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(text)
}

func TestEachModeServesItsClients(t *testing.T) {
	for _, c := range []struct {
		mode          Mode
		plain, secure string
	}{{Off, "hello\n", ""}, {Optional, "hello\n", "secure hello\n"}, {Require, "use TLS\n", "secure hello\n"}} {
		t.Run(c.mode.String(), func(t *testing.T) {
			addr, config := port(t, c.mode)
			plain, err := net.Dial("tcp", addr)
			require.Equal(t, c.plain, say(t, plain, err))
			secured, err := tls.Dial("tcp", addr, config)
			if c.secure == "" {
				require.Error(t, err)
				return
			}
			require.Equal(t, c.secure, say(t, secured, err))
		})
	}
}

// The server of beanstalkd ends reads by deadline and goes on afterwards.
func TestAReadGoesOnAfterItsDeadline(t *testing.T) {
	a := certstest.New(t, "orders")
	s, err := certs.Open(a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1"), nil)
	require.NoError(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	l := Listen(tcp, Options{Mode: Require, Config: func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{s.Current().Certificate}}
	}})
	next, served := make(chan struct{}), make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		// Before the first byte, too.
		c.SetReadDeadline(time.Unix(1, 0))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			served <- errors.New("no deadline before the first byte")
			return
		}
		b := make([]byte, 1)
		for range 2 {
			c.SetReadDeadline(time.Now().Add(patience))
			if _, err := c.Read(b); err != nil {
				served <- err
				return
			}
			c.SetReadDeadline(time.Unix(1, 0))
			if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
				served <- errors.New("no deadline after a byte")
				return
			}
			next <- struct{}{}
		}
		served <- nil
	}()
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	c, err := tls.Dial("tcp", tcp.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	require.NoError(t, err)
	defer c.Close()
	for range 2 {
		_, err = c.Write([]byte("x"))
		require.NoError(t, err)
		select {
		case <-next:
		case err := <-served:
			t.Fatal(err)
		}
	}
	require.NoError(t, <-served)
}

func FuzzFirstBytes(f *testing.F) {
	for _, seed := range []string{"", "\x16", "\x16\x03\x01\x00\x01\x00", "GET / HTTP/1.1\r\n", "put 0 0 0 1\r\n"} {
		f.Add([]byte(seed))
	}
	addr, _ := port(f, Require)
	f.Fuzz(func(t *testing.T, first []byte) {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		if _, err := c.Write(first); err == nil {
			c.(*net.TCPConn).CloseWrite()
		}
		_, err = io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "still open")
	})
}

// one is a listener of a single connection.
type one chan net.Conn

func (l one) Accept() (net.Conn, error) { return <-l, nil }
func (l one) Close() error              { return nil }
func (l one) Addr() net.Addr            { return nil }

func TestAHandshakeIsBoundedAndWhatFollowsIsNot(t *testing.T) {
	a := certstest.New(t, "orders")
	s, err := certs.Open(a.Issue(certs.RoleServer, "q", time.Hour, "127.0.0.1"), nil)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	for name, c := range map[string]struct {
		mode   Mode
		client func(c net.Conn) // has sent what it sends before the limit
		lasts  bool
	}{
		"silent":                      {Require, func(net.Conn) {}, false},
		"silent, where TLS is a wish": {Optional, func(net.Conn) {}, true},
		"half a handshake":            {Require, func(c net.Conn) { c.Write([]byte{handshakeRecord, 3, 1}) }, false},
		"half of a wish":              {Optional, func(c net.Conn) { c.Write([]byte{handshakeRecord, 3, 1}) }, false},
		"plain":                       {Optional, func(c net.Conn) { c.Write([]byte("GET")) }, true},
		"a whole handshake": {Require, func(c net.Conn) {
			require.NoError(t, tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", Time: func() time.Time { return a.Cert.NotBefore.Add(time.Minute) }}).Handshake())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				accepted := make(one, 1)
				accepted <- server
				l := Listen(accepted, Options{Mode: c.mode, Config: func() *tls.Config {
					return &tls.Config{Certificates: []tls.Certificate{s.Current().Certificate}}
				}})
				conn, err := l.Accept()
				require.NoError(t, err)
				ended := make(chan error, 1)
				go func() {
					_, err := io.Copy(io.Discard, conn)
					ended <- err
				}()
				c.client(client)
				time.Sleep(handshakeTime + time.Second)
				synctest.Wait()
				require.Equal(t, c.lasts, len(ended) == 0)
				conn.Close()
				client.Close()
				<-ended
			})
		})
	}
}
