package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
)

// patience is far more than the node gives a client that stops sending.
const patience = 30 * time.Second

func TestARequestThatNeverEndsGetsItsReply(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "m 1") })
	s := httptest.NewServer(New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}, Metrics: metrics}))
	t.Cleanup(s.Close)
	requests := map[string]struct {
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
	}
	open := map[string]net.Conn{} // all wait at the same time
	for name, request := range requests {
		for _, length := range []string{"Content-Length: 200000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			c, err := net.Dial("tcp", s.Listener.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
			_, err = fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\n%s", request.line, request.host, length)
			require.NoError(t, err)
			open[name+", "+length[:len("Content")]] = c
		}
	}
	for name, c := range open {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, name)
		kind, _, _ := strings.Cut(name, ",")
		require.Equal(t, requests[kind].status, r.StatusCode, name)
		require.True(t, r.Close, "its rest would be taken for the next request")
	}
}

func TestARequestThatNobodyNeedsMayArriveSlowly(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}}))
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	const parts, size = 8, 30_000
	_, err = fmt.Fprintf(c, "POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n", parts*size)
	require.NoError(t, err)
	for range parts {
		time.Sleep(time.Second) // together more than readGrace
		_, err := c.Write(make([]byte, size))
		require.NoError(t, err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	require.False(t, r.Close, "all of it has arrived")
}
