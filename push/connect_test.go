package push

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// secureServer serves HTTPS and sends the protocol of each post.
func secureServer(t *testing.T) (server *httptest.Server, protocols chan string) {
	protocols = make(chan string, 10)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { protocols <- q.Proto }))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused certificates
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, protocols
}

func trusting(server *httptest.Server, options *tls.Config) *tls.Config {
	options.RootCAs = x509.NewCertPool()
	options.RootCAs.AddCert(server.Certificate())
	return options
}

func TestPostsByTLS(t *testing.T) {
	target, reserved := &jobpb.PushTarget{Secret: secret}, &jobpb.Reserved{Id: "a", Topic: "t"}
	for protocol, options := range map[string]func() *tls.Config{"HTTP/1.1": jobTLS, "HTTP/2.0": topicTLS} {
		server, protocols := secureServer(t)
		list := parse(t, server.Listener.Addr().String()+","+strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1))
		c := newClient(list, trusting(server, options()))
		for range 2 {
			o := post(t.Context(), c, target, server.URL, reserved, "")
			require.Equal(t, outcome{label: "taken", answered: true, status: http.StatusOK}, o, protocol)
			require.Equal(t, protocol, <-protocols)
		}
		// The certificate is for 127.0.0.1, not for localhost.
		o := post(t.Context(), c, target, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), reserved, "")
		require.ErrorContains(t, o.detail, "certificate is valid for")
		c.CloseIdleConnections()
		c = newClient(list, options())
		o = post(t.Context(), c, target, server.URL, reserved, "")
		require.ErrorContains(t, o.detail, "certificate signed by unknown authority")
		require.False(t, o.answered)
		c.CloseIdleConnections()
	}
}

// The Transport would go on for ten seconds, so that posts with a short timeout to targets
// that hang would leave thousands of connections in the making.
func TestAConnectionInTheMakingEndsWithItsPost(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	transport := newClient(parse(t, silent.Addr().String()), topicTLS()).Transport.(*http.Transport)
	post, end := context.WithCancel(t.Context())
	making := context.WithValue(context.Background(), posting{}, post)
	ended := make(chan error, 1)
	go func() {
		_, err := transport.DialTLSContext(making, "tcp", silent.Addr().String())
		ended <- err
	}()
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()
	end()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = transport.DialContext(making, "tcp", silent.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
}

// Each post has a server of its own, as jobs with URLs may have.
func TestIdleConnectionsOfManyTargetsAreBounded(t *testing.T) {
	opened, closed := atomic.Int32{}, atomic.Int32{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	c := newClient(parse(t, "*.example"), trusting(server, jobTLS()))
	defer c.CloseIdleConnections()
	here := parse(t, server.Listener.Addr().String())
	c.Transport.(*http.Transport).DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return here.dialTLS(ctx, network, server.Listener.Addr().String(), trusting(server, jobTLS())) // all names lead there
	}
	for i := range 2 * MaxPosts {
		o := post(t.Context(), c, &jobpb.PushTarget{Secret: secret}, fmt.Sprintf("https://h%d.example/", i), &jobpb.Reserved{Id: "a", Topic: "t"}, "")
		require.Equal(t, "taken", o.label, o.reason)
	}
	require.EqualValues(t, 2*MaxPosts, opened.Load())
	require.Eventually(t, func() bool { return opened.Load()-closed.Load() <= MaxPosts }, soon, time.Millisecond)
}
