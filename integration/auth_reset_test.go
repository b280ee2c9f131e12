package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// All admin tokens are lost under enforce. Who holds the disk of a follower makes one again,
// once, while the cluster runs. The nonce is worth nothing at other nodes or a second time, also
// after a crash.
func TestTheWayBackInForWhoHoldsTheDisk(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	follower := c.follower()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	text := func(name string) string {
		content, err := os.ReadFile(file(name))
		require.NoError(t, err)
		return string(content)
	}
	at := func(n *localcluster.Node, args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), binary, append(args, "--addr", n.HTTP)...).CombinedOutput()
		return string(out), err
	}
	c.tarry("auth", "bootstrap", "--addr", follower.HTTP, "--data-dir", follower.DataDir(), "-o", file("lost"))
	c.tarry("--token-file", file("lost"), "token", "create", "shop", "--allow", "mail=add", "-o", file("shop"))
	c.tarry("--token-file", file("lost"), "auth", "mode", "enforce")

	c.tarry("auth", "reset", "--data-dir", follower.DataDir())
	stolen := file("stolen") // a copy of the directory's proofs
	require.NoError(t, os.Mkdir(stolen, 0o700))
	for _, name := range []string{"bootstrap-secret", "auth-reset"} {
		content, err := os.ReadFile(filepath.Join(follower.DataDir(), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(stolen, name), content, 0o600))
	}
	for _, n := range c.Nodes() {
		if n.ID != follower.ID {
			out, err := at(n, "auth", "bootstrap", "--data-dir", stolen)
			require.Error(t, err, "at another node")
			require.Contains(t, out, "tarry auth reset")
		}
	}
	c.until(func() error {
		out, err := at(follower, "auth", "bootstrap", "--data-dir", follower.DataDir(), "-o", file("root"))
		if err == nil {
			return nil
		}
		// An election, after which nobody may know whether the nonce was of use.
		c.tarry("auth", "reset", "--data-dir", follower.DataDir())
		return fmt.Errorf("%s", out)
	})
	require.NotEqual(t, text("lost"), text("root"))
	for _, n := range c.Nodes() {
		c.until(func() error { // a node learns of it from the log
			if out, err := at(n, "--token-file", file("lost"), "token", "list"); err == nil {
				return fmt.Errorf("the lost token is accepted: %s", out)
			}
			return nil
		})
		out, err := at(n, "--token-file", file("root"), "token", "list")
		require.NoError(t, err, out)
		require.Contains(t, out, "shop")
		out, err = at(n, "--token-file", file("shop"), "add", "--topic", "mail", "hello")
		require.NoError(t, err, out)
	}

	c.tarry("--token-file", file("root"), "token", "rotate", "root", "--overlap", "0s", "-o", file("rotated"))
	c.kill(follower)
	c.start(follower)
	c.until(func() error { // it asks the leader before it looks at the nonce
		out, err := at(follower, "auth", "bootstrap", "--data-dir", follower.DataDir(), "-o", file("second"))
		require.Error(t, err, "the nonce was used")
		if !strings.Contains(out, "used already") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	out, err := at(follower, "--token-file", file("rotated"), "auth", "mode")
	require.NoError(t, err, out)
	require.Contains(t, out, "enforce")
}
