package client_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// tokensSeen is a node that records the tokens of requests.
type tokensSeen struct {
	mu   sync.Mutex
	seen []string
}

func (s *tokensSeen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Header.Get("Authorization"))
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/v1/stream" || strings.HasSuffix(r.URL.Path, "/backup") {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"success":false,"code":"forbidden","error":"no"}`))
		return
	}
	_, _ = w.Write([]byte(`{"success":true,"mode":"enforce","rules":[]}`))
}

func (s *tokensSeen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func TestATokenIsSentWithEveryCall(t *testing.T) {
	node := &tokensSeen{}
	server := httptest.NewServer(node)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(" first\n"), 0o600))
	c, err := client.New([]string{server.URL}, client.WithTokenFile(path), client.WithPatience(0))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	_, err = c.WhoAmI(t.Context())
	require.NoError(t, err)
	for _, err := range c.Stream(t.Context(), client.StreamOptions{Topics: []string{"mail"}}) {
		require.ErrorIs(t, err, client.CodeForbidden)
	}
	_, err = c.Backups().Open(t.Context(), client.BackupOptions{})
	require.ErrorIs(t, err, client.CodeForbidden)
	require.Equal(t, []string{"Bearer first", "Bearer first", "Bearer first"}, node.take())

	// A file that has changed is read again.
	require.NoError(t, os.WriteFile(path, []byte("the-second"), 0o600))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	_, err = c.WhoAmI(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"Bearer the-second"}, node.take())

	for _, bad := range []string{"", "two words", "line\nbreak", "ümlaut"} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(int64(len(bad)+2), 0)))
		_, err = c.WhoAmI(t.Context())
		require.ErrorContains(t, err, "the token is", bad)
		require.Empty(t, node.take())
	}
	require.NoError(t, os.Remove(path))
	_, err = c.WhoAmI(t.Context())
	require.ErrorContains(t, err, "the file of the token")
}

// A token is not for whoever reads the network.
func TestATokenIsNotSentInPlainTextToAnotherMachine(t *testing.T) {
	token := client.WithToken("secret")
	for addr, sent := range map[string]bool{
		"127.0.0.1:7300": true, "localhost:7300": true, "[::1]:7300": true, "https://queue.example:7300": true, "127.9.9.9:7300": true,
		"queue.example:7300": false, "http://10.0.0.1:7300": false, "localhost.example:7300": false, "0.0.0.0:7300": false, "[::]:7300": false,
	} {
		_, err := client.New([]string{addr}, token)
		require.Equal(t, sent, err == nil, "%s: %v", addr, err)
		if err != nil {
			require.ErrorContains(t, err, "without TLS")
			require.NotContains(t, err.Error(), "secret")
		}
		_, err = client.New([]string{addr}, token, client.WithTokenOverHTTP())
		require.NoError(t, err)
		_, err = client.New([]string{addr})
		require.NoError(t, err)
	}
}

func TestTheProofForAFirstTokenIsNotSentInPlainTextToAnotherMachine(t *testing.T) {
	c, err := client.New([]string{"192.0.2.1:7300"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Tokens().Bootstrap(t.Context(), "secret", "root")
	require.ErrorContains(t, err, "without TLS")
	require.NotContains(t, err.Error(), "secret")
}
