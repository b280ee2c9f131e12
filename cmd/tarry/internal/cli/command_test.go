package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRawRequestsSendTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("word\n"), 0o600))
	token := ClientToken{File: file}
	q, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:7300/metrics", nil)
	require.NoError(t, err)
	require.NoError(t, token.sign(q))
	require.Equal(t, "Bearer word", q.Header.Get("Authorization"))
	q, err = http.NewRequest(http.MethodGet, "http://queue.example:7300/metrics", nil)
	require.NoError(t, err)
	require.ErrorContains(t, token.sign(q), "without TLS")
	require.Empty(t, q.Header)
}
