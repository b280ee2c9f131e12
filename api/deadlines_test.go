package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
)

// patience is far more than the node gives a client that stops sending.
const patience = 30 * time.Second

// pipes is a listener in memory, for tests in which time is fake.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, io.EOF
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	client, end := net.Pipe()
	p <- end
	return client
}

// servePipes serves the API of a fake node, and /metrics, until the test ends.
func servePipes(t *testing.T) pipes {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "m 1") })
	s := &http.Server{Handler: New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, Metrics: metrics})}
	p, done := make(pipes), make(chan struct{})
	go func() { defer close(done); s.Serve(p) }()
	t.Cleanup(func() { close(p); s.Close(); <-done })
	return p
}

func TestARequestThatNeverEndsGetsItsReply(t *testing.T) {
	for name, request := range map[string]struct {
		line   string
		host   string
		status int
	}{
		"no such path":       {"POST /nothing", "127.0.0.1", http.StatusNotFound},
		"no body is needed":  {"GET /livez", "127.0.0.1", http.StatusRequestTimeout},
		"the wrong method":   {"POST /livez", "127.0.0.1", http.StatusMethodNotAllowed},
		"another handler":    {"GET /metrics", "127.0.0.1", http.StatusOK},
		"the wrong host":     {"POST /v1/jobs", "evil.example", http.StatusMisdirectedRequest},
		"a body that is due": {"POST /v1/jobs", "127.0.0.1", http.StatusRequestTimeout},
	} {
		for _, length := range []string{"Content-Length: 200000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			t.Run(name+" "+length[:len("Content")], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := servePipes(t).dial()
					defer c.Close()
					require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
					_, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\n%s", request.line, request.host, length)
					require.NoError(t, err)
					r, err := http.ReadResponse(bufio.NewReader(c), nil)
					require.NoError(t, err)
					require.Equal(t, request.status, r.StatusCode)
					require.True(t, r.Close, "its rest would be taken for the next request")
				})
			})
		}
	}
}

func TestARequestThatNobodyNeedsMayArriveSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servePipes(t).dial()
		defer c.Close()
		const parts, size = 8, 30_000
		_, err := fmt.Fprintf(c, "POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n", parts*size)
		require.NoError(t, err)
		for range parts {
			time.Sleep(time.Second) // together more than readGrace
			_, err := io.WriteString(c, strings.Repeat("x", size))
			require.NoError(t, err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, r.StatusCode)
		require.False(t, r.Close, "all of it has arrived")
	})
}
