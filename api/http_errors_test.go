package api

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/httpx"
)

// Every error response is JSON.
func TestErrorsOfTheServerItselfAreJSON(t *testing.T) {
	real, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: newRig(t).handler, MaxHeaderBytes: 4 << 10, DisableGeneralOptionsHandler: true}
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(httpx.JSONErrors(httpx.LimitConnections(real, 100, nil, httpx.RefusedConnection)))
	}()
	defer func() { require.ErrorIs(t, <-done, http.ErrServerClosed) }()
	defer s.Close()
	for sent, want := range map[string]struct {
		status int
		says   string
	}{
		"GET /v1/jobs/a%zz HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                          {400, "escaped"},
		"GET / HTTP/1.1\r\n\r\n":                                                                                         {400, "missing required Host header"},
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n":                                                                   {400, "malformed"},
		"nonsense\r\n\r\n":                                                                                               {400, "malformed"},
		"GET / HTTP/3.7\r\nHost: localhost\r\n\r\n":                                                                      {505, "unsupported protocol version"},
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 10<<10) + "\r\n\r\n":                            {431, "too large"},
		"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\nContent-Length: 2\r\n\r\n{}":                          {417, "100-continue"},
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n":                                          {501, "chunked"},
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":                                             {404, "nothing"},
		"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n":                                         {400, "malformed"},
		"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":                                          {400, "id_prefix"},
		"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n": {400, "incomplete"},
	} {
		t.Run(sent[:min(len(sent), 80)], func(t *testing.T) {
			c, err := net.Dial("tcp", real.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			_, err = io.WriteString(c, sent)
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, want.status, answer.StatusCode, string(body))
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			var a struct {
				Success     *bool
				Code, Error string
			}
			require.NoError(t, json.Unmarshal(body, &a), string(body))
			require.False(t, *a.Success)
			require.NotEmpty(t, a.Code)
			require.Contains(t, a.Error, want.says)
		})
	}
}

// net/http goes by Transfer-Encoding, and a proxy in front may go by Content-Length. Then a part of
// one client's body would be another request.
func TestARequestWithTwoLengthsIsRefusedAndItsConnectionCloses(t *testing.T) {
	real, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: newRig(t).handler, ConnContext: httpx.ConnContext}
	done := make(chan error, 1)
	go func() { done <- s.Serve(httpx.JSONErrors(httpx.LimitRequests(real, 100, nil))) }()
	defer func() { require.ErrorIs(t, <-done, http.ErrServerClosed) }()
	defer s.Close()
	const start, body, next = "POST /nothing HTTP/1.1\r\nHost: localhost\r\n", "2\r\n{}\r\n0\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		status int
		closes bool
	}{
		"chunked":        {start + "Transfer-Encoding: chunked\r\n\r\n" + body, 404, false},
		"both":           {start + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + body + next, 400, true},
		"both, reversed": {start + "content-length: 2\r\nTRANSFER-ENCODING: chunked\r\n\r\n" + body, 400, true},
		"in a body":      {start + "Transfer-Encoding: chunked\r\n\r\n13\r\n\nContent-Length: 1\n\r\n0\r\n\r\n", 404, false},
		"long head":      {start + "X: " + strings.Repeat("x", 8<<10) + "\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + body + next, 404, true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", real.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			_, err = io.WriteString(conn, c.sent)
			require.NoError(t, err)
			in := bufio.NewReader(conn)
			r, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, r.Body)
			require.NoError(t, err)
			require.Equal(t, c.status, r.StatusCode)
			require.Equal(t, c.closes, r.Close)
			if c.closes {
				_, err := in.ReadByte()
				require.Error(t, err, "what follows is no request")
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			}
		})
	}
}
