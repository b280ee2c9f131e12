package integration

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A real node counts the connections of a token from the first call to the end of each, and keeps
// others out meanwhile.
func TestANodeHoldsATokenToItsLimits(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	for _, args := range [][]string{{"ca", "--cluster", "local"}, {"server", "n1", "--host", "127.0.0.1", "--ca", keys + "/ca.crt", "--ca-key", keys + "/ca.key"}} {
		out, err := exec.CommandContext(t.Context(), binary, append(append([]string{"cert"}, args...), "--dir", keys)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Run("plain", func(t *testing.T) {
		limitOfConnections(t, net.Dial)
	})
	t.Run("TLS", func(t *testing.T) {
		limitOfConnections(t, func(network, addr string) (net.Conn, error) {
			return tls.Dial(network, addr, &tls.Config{InsecureSkipVerify: true})
		}, "--http-tls-mode", "optional", "--http-tls-cert", keys+"/server-n1.crt", "--http-tls-key", keys+"/server-n1.key")
	})
}

func limitOfConnections(t *testing.T, connect func(network, addr string) (net.Conn, error), args ...string) {
	t.Parallel()
	c := startCluster(t, 1, args...)
	n, dir := c.Nodes()[0], t.TempDir()
	root, shop := filepath.Join(dir, "root"), filepath.Join(dir, "shop")
	c.tarry("auth", "bootstrap", "--addr", n.HTTP, "--data-dir", n.DataDir(), "-o", root)
	c.tarry("--token-file", root, "token", "create", "shop", "--allow", "mail=add", "--limit", "connections=1", "-o", shop)
	c.tarry("--token-file", root, "auth", "mode", "enforce")
	text, err := os.ReadFile(shop)
	require.NoError(t, err)
	dial := func() (call func() *http.Response) {
		conn, err := connect("tcp", n.HTTP)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		in := bufio.NewReader(conn)
		return func() *http.Response {
			q, err := http.NewRequest(http.MethodGet, "http://"+n.HTTP+"/v1/whoami", nil)
			require.NoError(t, err)
			q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
			require.NoError(t, q.Write(conn))
			r, err := http.ReadResponse(in, q)
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			return r
		}
	}
	one := dial()
	require.Equal(t, http.StatusOK, one().StatusCode)
	refused := dial()()
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "1", refused.Header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, one().StatusCode)
	require.Contains(t, c.tarry("--token-file", root, "token", "show", "shop"), "connections=1")
	c.tarry("--token-file", root, "auth", "mode", "off")
	require.Contains(t, c.scrape(n), `tarry_token_limited_total{limit="connections"} 1`)
}
