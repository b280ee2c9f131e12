package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/bench/localcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func dial(t *testing.T, addr string) *conn {
	c := newConn(t.Context(), addr, localcluster.Access{})
	t.Cleanup(c.close)
	return c
}

func TestCallsShareOneConnection(t *testing.T) {
	peers := make(chan string, 3)
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		peers <- r.RemoteAddr
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"success":true,"echo":"%s %s %s"}`, r.Method, r.URL.Path, body)
	})
	c := dial(t, addr)
	for i := range 3 {
		answer, err := c.call("POST", "/v1/x", fmt.Append(nil, "body", i), time.Minute)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("POST /v1/x body%d", i), text(answer, "echo"))
	}
	first := <-peers
	require.Equal(t, first, <-peers)
	require.Equal(t, first, <-peers)
}

func TestAnswersInChunksAreReadWhole(t *testing.T) {
	want := `{"success":true,"v":"` + strings.Repeat("z", 100_000) + `"}`
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for rest := want; rest != ""; {
			n := min(len(rest), 7001)
			io.WriteString(w, rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	})
	c := dial(t, addr)
	for range 2 {
		answer, err := c.call("GET", "/", nil, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, string(answer))
	}
}

func TestFailedAnswersAreErrorsAndKeepTheConnection(t *testing.T) {
	var n atomic.Int32
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) {
		case 1:
			w.WriteHeader(503)
			io.WriteString(w, `{"success":false,"code":"not_applied"}`)
		case 2:
			io.WriteString(w, `{"success":false,"results":[]}`)
		default:
			io.WriteString(w, `{"success":true}`)
		}
	})
	c := dial(t, addr)
	_, err := c.call("POST", "/", nil, time.Minute)
	require.ErrorContains(t, err, "not_applied")
	_, err = c.call("POST", "/", nil, time.Minute)
	require.ErrorContains(t, err, "status 200")
	first := c.nc
	_, err = c.call("POST", "/", nil, time.Minute)
	require.NoError(t, err)
	require.Same(t, first, c.nc)
}

// raw answers every connection with the same bytes and closes it.
func raw(t *testing.T, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1000)
			nc.Read(buf)
			io.WriteString(nc, answer)
			nc.Close()
		}
	}()
	return l.Addr().String()
}

func TestMalformedAnswersAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":         "",
		"no status":       "hello\r\n",
		"status is text":  "HTTP/1.1 abc OK\r\n\r\n",
		"negative length": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"huge length":     "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
		"cut short":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"bad chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"long line":       "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20_000) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, raw(t, answer))
			for range 2 { // it dials anew after a failure
				_, err := c.call("GET", "/", nil, time.Minute)
				require.Error(t, err)
				require.Nil(t, c.nc)
			}
		})
	}
}

func TestContextEndsACallInFlight(t *testing.T) {
	arrived := make(chan struct{})
	addr := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	c := newConn(ctx, addr, localcluster.Access{})
	defer c.close()
	go func() { <-arrived; cancel() }()
	_, err := c.call("GET", "/", nil, time.Hour)
	require.Error(t, err)
}

func TestTextFindsAStringMember(t *testing.T) {
	answer := []byte(`{"success":true,"jobs":[{"id":"a-1","token":"0-7-1","n":5}]}`)
	require.Equal(t, "a-1", text(answer, "id"))
	require.Equal(t, "0-7-1", text(answer, "token"))
	require.Empty(t, text(answer, "n"))
	require.Empty(t, text(answer, "absent"))
}
