package integration

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// keyring is the reply of the calls about gossip keys.
type keyring struct {
	Keys    []string
	Changed string
	Current int
}

// changeKeys makes a call about gossip keys until a leader has done it on so many nodes.
func (c *cluster) changeKeys(method, path string, current int) (k keyring) {
	c.t.Helper()
	c.until(func() error {
		k = keyring{}
		err := c.Call(c.t.Context(), method, c.leader(), "/v1/cluster/keyring"+path, &k)
		if err == nil && k.Current != current {
			err = fmt.Errorf("%d nodes have the change, not %d: %+v", k.Current, current, k)
		}
		return err
	})
	return k
}

// replaceFile gives a file the content of others at once.
func replaceFile(t *testing.T, file string, from ...string) {
	t.Helper()
	var all []byte
	for _, f := range from {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		all = append(all, data...)
	}
	require.NoError(t, os.WriteFile(file+".new", all, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// rereads sends SIGHUP until the present life of each node has read its files, as changed now,
// so many times.
func (c *cluster) rereads(times int, nodes ...*localcluster.Node) {
	c.t.Helper()
	for _, n := range nodes {
		c.until(func() error {
			if err := syscall.Kill(n.PID(), syscall.SIGHUP); err != nil {
				return err
			}
			out, err := n.Output()
			if got := strings.Count(out, "certificate reloaded"); err == nil && got < times {
				err = fmt.Errorf("%s has reloaded %d times, not %d", n.ID, got, times)
			}
			return err
		})
	}
}

// While a node is away the authority and the gossip keys are replaced. It comes back with
// files that mean nothing any more and stays outside. With a certificate of the new authority
// it takes part, and fetches the gossip keys by itself.
func TestANodeThatMissedARotationComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	dir, next := c.certificates(), t.TempDir()
	file := func(format string, n *localcluster.Node) string { return filepath.Join(dir, fmt.Sprintf(format, n.ID)) }
	_ = c.tarry("keygen", filepath.Join(dir, "gossip.keys"))
	for _, n := range c.Nodes() {
		replaceFile(t, file("ca-%s.crt", n), filepath.Join(dir, "ca.crt"))
		replaceFile(t, file("gossip-%s.keys", n), filepath.Join(dir, "gossip.keys"))
		n.Setenv("TARRY_CLUSTER_TLS_CA", file("ca-%s.crt", n))
		n.Setenv("TARRY_GOSSIP_KEYS_FILE", file("gossip-%s.keys", n))
	}
	c.clusterTLS("require")
	c.start(c.Nodes()...)
	c.waitVoters(c.leader(), "n1", "n2", "n3")
	old := c.changeKeys(http.MethodGet, "", 3).Keys[0]
	away := c.follower()
	stay := slices.DeleteFunc(c.Nodes(), func(n *localcluster.Node) bool { return n == away })
	c.terminate(away)

	key := c.changeKeys(http.MethodPost, "/install", 2).Changed
	require.Equal(t, key, c.changeKeys(http.MethodPost, "/"+key+"/use", 2).Keys[0])
	err := c.Call(t.Context(), http.MethodDelete, c.leader(), "/v1/cluster/keyring/"+old, nil)
	require.Error(t, err, "one node does not have the new key")

	c.cert(next, "ca", "--cluster", "orders")
	for _, n := range c.Nodes() {
		c.cert(next, "node", n.ID)
	}
	renew := func(n *localcluster.Node) {
		for _, name := range []string{"node-%s.key", "node-%s.crt"} {
			replaceFile(t, file(name, n), filepath.Join(next, fmt.Sprintf(name, n.ID)))
		}
	}
	for i, step := range []func(n *localcluster.Node){
		func(n *localcluster.Node) {
			replaceFile(t, file("ca-%s.crt", n), filepath.Join(dir, "ca.crt"), filepath.Join(next, "ca.crt"))
		},
		renew,
		func(n *localcluster.Node) { replaceFile(t, file("ca-%s.crt", n), filepath.Join(next, "ca.crt")) },
	} {
		for _, n := range stay {
			step(n)
		}
		c.rereads(i+1, stay...)
	}

	require.NoError(t, away.Start())
	c.until(func() error {
		for _, n := range stay {
			if out, err := n.Output(); err == nil && strings.Contains(out, "unknown authority") {
				return nil
			}
		}
		return errors.New("no node has logged that it does not know the authority of " + away.ID)
	})
	require.Error(t, c.Get(t.Context(), away, "/readyz", nil))

	replaceFile(t, file("ca-%s.crt", away), filepath.Join(next, "ca.crt"))
	renew(away)
	c.rereads(1, away)
	c.waitReady(away)
	c.waitHealthy(away)
	c.waitVoters(c.leader(), "n1", "n2", "n3")
	require.Equal(t, key, c.changeKeys(http.MethodGet, "", 3).Keys[0])
	c.until(func() error {
		if k := c.changeKeys(http.MethodGet, "", 3); !slices.Contains(k.Keys, old) {
			return nil
		}
		err := c.Call(t.Context(), http.MethodDelete, c.leader(), "/v1/cluster/keyring/"+old, nil)
		return errors.Join(errors.New("the old key was there"), err)
	})
	c.until(func() error {
		return c.Post(t.Context(), away, "/v1/jobs", object{"topic": "probes", "id": "p", "delay": 3600, "body": "x"}, nil)
	})
	c.requireEqualDigests(c.leader(), 3)
}
