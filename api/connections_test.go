package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"tarry/api/apitest"
	"tarry/api/httpx"
)

func TestAConnectionBeyondTheLimitIsRefusedUntilAnotherIsClosed(t *testing.T) {
	real, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := httpx.LimitConnections(real, 2, nil, httpx.RefusedConnection)
	accepted := make(chan net.Conn, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", real.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	dial()
	first, second := <-accepted, <-accepted
	answer, err := http.ReadResponse(bufio.NewReader(dial()), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"success":false,"code":"overloaded","error":"this node has as many connections as it may","outcome":"not_applied"}`, string(body))

	require.NoError(t, first.Close())
	first.Close() // a second Close does not count
	dial()
	third := <-accepted
	_, err = http.ReadResponse(bufio.NewReader(dial()), nil)
	require.NoError(t, err)
	second.Close()
	third.Close()
	require.NoError(t, l.Close())
	<-done
}

func TestListenersShareALimit(t *testing.T) {
	shared := semaphore.NewWeighted(1)
	open := func() (net.Listener, net.Conn) {
		real, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { real.Close() })
		c, err := net.Dial("tcp", real.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return httpx.LimitConnections(real, 5, shared, httpx.RefusedConnection), c
	}
	one, _ := open()
	other, refused := open()
	held, err := one.Accept()
	require.NoError(t, err)
	next := make(chan net.Conn, 1)
	go func() {
		c, _ := other.Accept()
		next <- c
	}()
	answer, err := http.ReadResponse(bufio.NewReader(refused), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	require.NoError(t, held.Close())
	c, err := net.Dial("tcp", other.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NotNil(t, <-next)
}

func TestProbesAndOperatorsHaveRoomWhenConnectionsAreUsedUp(t *testing.T) {
	real, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: New(Options{Queue: apitest.New(t), Operator: &apitest.Operator{}}), ConnContext: httpx.ConnContext}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(httpx.JSONErrors(httpx.LimitRequests(real, 2, nil)))
	}()
	t.Cleanup(func() { server.Close(); <-done })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", real.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		return c
	}
	ask := func(c net.Conn, path string) *http.Response {
		_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		return r
	}
	for range 2 {
		require.False(t, ask(dial(), "/livez").Close)
	}
	for path, status := range map[string]int{
		"/livez": http.StatusOK, "/readyz": http.StatusOK, "/v1/cluster/members": http.StatusOK,
		"/v1/topics": http.StatusTooManyRequests, "/v1/whoami": http.StatusTooManyRequests,
	} {
		r := ask(dial(), path)
		require.Equal(t, status, r.StatusCode, path)
		require.True(t, r.Close, "such a connection has one call")
	}

	// One address does not use up the room, and who says nothing loses it.
	var silent []net.Conn
	for range httpx.OperatorConnections / 2 {
		silent = append(silent, dial())
	}
	require.Equal(t, http.StatusTooManyRequests, ask(dial(), "/livez").StatusCode)
	for _, c := range silent {
		_, err := io.ReadAll(c)
		require.NoError(t, err, "the node closes it")
	}
	require.Equal(t, http.StatusOK, ask(dial(), "/livez").StatusCode)
}
