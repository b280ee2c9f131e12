package api

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every error response is JSON.
func TestErrorsOfTheServerItselfAreJSON(t *testing.T) {
	real, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: newRig(t).handler, MaxHeaderBytes: 4 << 10, DisableGeneralOptionsHandler: true}
	done := make(chan error, 1)
	go func() { done <- s.Serve(JSONErrors(LimitConnections(real, 100, nil, RefusedConnection))) }()
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

// A job's body that looks like such a response is returned unchanged.
func TestBodiesArePassedOn(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request", `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n`,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n",
	} {
		_, changed := serverError([]byte(text))
		require.False(t, changed, text)
	}
}
