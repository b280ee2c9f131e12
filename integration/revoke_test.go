package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A token that was revoked reads nothing any more, on any node, from the acknowledgement on:
// also on followers, which learn of it a moment later.
func TestARevokedTokenReadsNothingOnAnyNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	leader := c.leader()
	post(t, leader.HTTP, "/v1/jobs", object{"topic": "mail", "id": "m1", "delay": 3600, "body": "x"})
	c.tarry("auth", "bootstrap", "--addr", leader.HTTP, "--data-dir", leader.DataDir(), "-o", root)
	c.tarry("--token-file", root, "auth", "mode", "enforce")
	get := func(addr, path, token string) int {
		q, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+token)
		r, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	paths := []string{"/v1/jobs/m1", "/v1/topics/mail", "/v1/topics/mail/jobs?state=delayed", "/v1/topics"}
	for round := range 10 {
		id := fmt.Sprintf("shop%d", round)
		file := filepath.Join(dir, id)
		c.tarry("--token-file", root, "token", "create", id, "--allow", "mail=read", "-o", file)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		token, path := strings.TrimSpace(string(text)), paths[round%len(paths)]
		for _, n := range c.Nodes() {
			require.Equal(t, http.StatusOK, get(n.HTTP, path, token), "%s on %s", path, n.ID)
		}
		c.tarry("--token-file", root, "token", "revoke", id, "--yes")
		for _, n := range c.Nodes() {
			require.Equal(t, http.StatusUnauthorized, get(n.HTTP, path, token), "%s on %s", path, n.ID)
		}
	}
	c.tarry("--token-file", root, "auth", "mode", "off")
}
