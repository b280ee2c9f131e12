package integration

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// certificates makes those of a cluster with the command line, and gives each node its own
// for the next start.
func (c *cluster) certificates() (dir string) {
	c.t.Helper()
	dir = c.t.TempDir()
	c.cert(dir, "ca", "--cluster", "orders")
	for _, n := range c.Nodes() {
		c.cert(dir, "node", n.ID)
		n.Setenv("TARRY_CLUSTER_TLS_CA", filepath.Join(dir, "ca.crt"))
		n.Setenv("TARRY_CLUSTER_TLS_CERT", filepath.Join(dir, "node-"+n.ID+".crt"))
		n.Setenv("TARRY_CLUSTER_TLS_KEY", filepath.Join(dir, "node-"+n.ID+".key"))
	}
	return dir
}

// cert runs tarry cert in a directory.
func (c *cluster) cert(dir string, args ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), binary, append([]string{"cert"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(c.t, err, "%s", out)
}

// clusterTLS sets the mode for the next starts.
func (c *cluster) clusterTLS(mode string) {
	for _, n := range c.Nodes() {
		n.Setenv("TARRY_CLUSTER_TLS_MODE", mode)
	}
}

func TestNodesWithCertificatesFormAClusterAndKeepStrangersOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	dir := c.certificates()
	c.clusterTLS("require")
	c.start(c.Nodes()...)
	for i, n := range c.Nodes() {
		post(t, n.HTTP, "/v1/jobs", object{"topic": "probes", "id": fmt.Sprint("p", i), "delay": 3600, "body": "x"})
	}
	c.requireEqualDigests(c.leader(), 3)

	// A node without a certificate, and one whose certificate is a client's, stay outside.
	plain, err := c.Add("n4")
	require.NoError(t, err)
	require.NoError(t, plain.Start())
	c.cert(dir, "client", "billing")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client-billing.crt"), filepath.Join(dir, "client-billing.key"))
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", c.leader().Cluster, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"tarry/1"}, InsecureSkipVerify: true})
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	require.ErrorContains(t, err, "bad certificate")
	c.until(func() error {
		for _, n := range c.Nodes() {
			if out, err := n.Output(); err == nil && strings.Contains(out, "called without TLS") {
				return nil
			}
		}
		return errors.New("no node has logged that n4 calls without TLS")
	})
	c.waitVoters(c.leader(), "n1", "n2", "n3")

	// With a certificate of its own it is taken in.
	c.kill(plain)
	c.cert(dir, "node", "n4")
	plain.Setenv("TARRY_CLUSTER_TLS_CA", filepath.Join(dir, "ca.crt"))
	plain.Setenv("TARRY_CLUSTER_TLS_CERT", filepath.Join(dir, "node-n4.crt"))
	plain.Setenv("TARRY_CLUSTER_TLS_KEY", filepath.Join(dir, "node-n4.key"))
	plain.Setenv("TARRY_CLUSTER_TLS_MODE", "require")
	c.start(plain)
	c.waitVoters(c.leader(), "n1", "n2", "n3", "n4")
}

// hangUp makes all nodes read their certificates again, and waits until that has had an effect.
func (c *cluster) hangUp(seen func(n *localcluster.Node) error) {
	c.t.Helper()
	for _, n := range c.Nodes() {
		require.NoError(c.t, syscall.Kill(n.PID(), syscall.SIGHUP))
		c.until(func() error { return seen(n) })
	}
}

// The authority of a running cluster is replaced without a restart.
func TestAnAuthorityIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	old, next := c.certificates(), t.TempDir()
	c.clusterTLS("require")
	c.start(c.Nodes()...)
	l := startLoad(t, c.addrs())
	c.cert(next, "ca", "--cluster", "orders")
	reloads := 0
	reloaded := func(n *localcluster.Node) error {
		out, err := n.Output()
		if got := strings.Count(out, "certificate reloaded"); err == nil && got < reloads {
			err = fmt.Errorf("%s has reloaded %d times, not %d", n.ID, got, reloads)
		}
		return err
	}
	write := func(name string, from ...string) {
		var all []byte
		for _, f := range from {
			data, err := os.ReadFile(f)
			require.NoError(t, err)
			all = append(all, data...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(old, name+".new"), all, 0o600))
		require.NoError(t, os.Rename(filepath.Join(old, name+".new"), filepath.Join(old, name)))
	}
	write("ca.crt", filepath.Join(old, "ca.crt"), filepath.Join(next, "ca.crt"))
	reloads++
	c.hangUp(reloaded)

	// Half of a new pair is refused, and the old one stays in use.
	for _, n := range c.Nodes() {
		c.cert(next, "node", n.ID)
		write("node-"+n.ID+".key", filepath.Join(next, "node-"+n.ID+".key"))
	}
	c.hangUp(func(n *localcluster.Node) error {
		if got := c.metric(n, `tarry_tls_reload_failures_total{port="cluster"}`); got != "1" {
			return fmt.Errorf("%s has %s failures", n.ID, got)
		}
		return nil
	})
	for _, n := range c.Nodes() {
		write("node-"+n.ID+".crt", filepath.Join(next, "node-"+n.ID+".crt"))
	}
	reloads++
	c.hangUp(reloaded)

	write("ca.crt", filepath.Join(next, "ca.crt"))
	reloads++
	c.hangUp(reloaded)
	victim := c.follower()
	c.terminate(victim)
	c.start(victim)
	c.waitHealthy(victim)
	for _, n := range c.Nodes() {
		require.Equal(t, "0", c.metric(n, "tarry_cluster_plain_connections"))
		require.NotEqual(t, "0", c.metric(n, "tarry_cluster_tls_connections"))
	}
	l.judge()
	c.requireEqualDigests(c.leader(), 3)
}

// A cluster moves to TLS and back in rolling restarts, and no job is lost.
func TestTheMoveToTLSAndBackLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.certificates()
	c.start(c.Nodes()...)
	l := startLoad(t, c.addrs())
	for _, mode := range []string{"accept", "prefer", "require", "prefer", "accept", "off"} {
		c.clusterTLS(mode)
		for _, n := range c.followersFirst() {
			c.terminate(n)
			l.writes()
			c.start(n)
			c.waitHealthy(n)
		}
	}
	r := l.judge()
	t.Logf("operations %d, unknown outcomes %d, worst write gap %v", r.Ops, r.Unknowns(), r.WorstWriteGap)
	c.requireEqualDigests(c.leader(), 3)
}
