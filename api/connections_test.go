package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
)

func TestAConnectionBeyondTheLimitIsRefusedUntilAnotherIsClosed(t *testing.T) {
	real, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := LimitConnections(real, 2, nil, RefusedConnection)
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
		return LimitConnections(real, 5, shared, RefusedConnection), c
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
