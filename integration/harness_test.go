package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// binary is the path of the tarry binary, built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tarry-integration-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "tarry")
		build := exec.Command("go", "build", "-o", binary, "tarry/cmd/tarry")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build of the binary failed: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// settings from the environment.
func faultTime(t *testing.T) time.Duration {
	standard := 60
	if testing.Short() {
		standard = 15
	}
	return time.Duration(number(t, "TARRY_FAULT_SECONDS", standard)) * time.Second
}

func number(t *testing.T, name string, standard int) int {
	v := os.Getenv(name)
	if v == "" {
		return standard
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err, "environment variable %s takes a whole number", name)
	return n
}

// cluster is a localcluster with the patience and the manners of a test.
type cluster struct {
	*localcluster.Cluster
	t *testing.T
}

// newCluster starts nothing. At the end of the test every process is stopped,
// and the logs are printed when the test failed.
func newCluster(t *testing.T, nodes int, args ...string) *cluster {
	return placeCluster(t, localcluster.Options{Nodes: nodes, Args: args})
}

func placeCluster(t *testing.T, o localcluster.Options) *cluster {
	o.Binary, o.Dir = binary, t.TempDir()
	c, err := localcluster.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Stop())
		if t.Failed() {
			for _, n := range c.Nodes() {
				t.Logf("end of the log of node %s:\n%s", n.ID, tail(n.LogPath()))
			}
		}
	})
	return &cluster{c, t}
}

// startCluster starts a cluster and waits until every node is ready.
func startCluster(t *testing.T, nodes int, args ...string) *cluster {
	c := newCluster(t, nodes, args...)
	c.start(c.Nodes()...)
	return c
}

// tailBytes is how much of a log a failed test prints.
const tailBytes = 8 << 10

func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	// What a process died of says more than what came last.
	for _, death := range []string{"panic: ", "fatal error: ", "stopping at once"} {
		if at := bytes.Index(data, []byte(death)); at >= 0 {
			data = data[:min(len(data), at+tailBytes)]
			break
		}
	}
	return string(data[max(0, len(data)-tailBytes):])
}

// patience bounds every wait of a test for the cluster to come round. It is far
// above what is needed; how long things take is measured, not asserted.
const patience = 60 * time.Second

func waitUntil(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, localcluster.Until(ctx, f))
}

func (c *cluster) until(f func() error) {
	c.t.Helper()
	waitUntil(c.t, f)
}

func (c *cluster) waitReady(nodes ...*localcluster.Node) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	require.NoError(c.t, c.WaitReady(ctx, nodes...))
}

func (c *cluster) kill(nodes ...*localcluster.Node) {
	c.t.Helper()
	for _, n := range nodes {
		require.NoError(c.t, n.Kill())
	}
}

// start starts nodes, in this order, and waits until all are ready.
func (c *cluster) start(nodes ...*localcluster.Node) {
	c.t.Helper()
	for _, n := range nodes {
		require.NoError(c.t, n.Start())
	}
	c.waitReady(nodes...)
}

// killLeader kills the leader and starts it again.
func (c *cluster) killLeader() {
	c.t.Helper()
	victim := c.leader()
	c.kill(victim)
	require.NotEqual(c.t, victim, c.leader(), "another node leads")
	c.start(victim)
}

func (c *cluster) leader() *localcluster.Node {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	n, err := c.Leader(ctx)
	require.NoError(c.t, err)
	return n
}

// follower is a running node that does not lead.
func (c *cluster) follower() *localcluster.Node {
	c.t.Helper()
	leader := c.leader()
	for _, n := range c.Nodes() {
		if n != leader && n.Running() {
			return n
		}
	}
	require.FailNow(c.t, "no follower is running")
	return nil
}

// waitVoters waits until node n sees exactly the voters with the ids, all alive.
func (c *cluster) waitVoters(n *localcluster.Node, ids ...string) {
	c.t.Helper()
	c.until(func() error {
		members, err := c.Members(c.t.Context(), n)
		if err != nil {
			return err
		}
		voters := map[string]bool{}
		for _, m := range members {
			if m.Voter && m.Alive {
				voters[m.ID] = true
			}
		}
		for _, id := range ids {
			if !voters[id] {
				return fmt.Errorf("%s is not a live voter: %+v", id, members)
			}
		}
		if len(members) != len(ids) {
			return fmt.Errorf("want the members %v, have %+v", ids, members)
		}
		return nil
	})
}

// verification is the answer of POST /v1/cluster/verify.
type verification struct {
	Equal   bool
	Index   uint64
	Digests []struct{ ID, Digest, Error string }
}

// complete fails while a node has not answered.
func (v *verification) complete() error {
	for _, d := range v.Digests {
		if d.Error != "" {
			return fmt.Errorf("node %s: %s", d.ID, d.Error)
		}
	}
	return nil
}

// requireEqualDigests is I9: all nodes have one state. A node that was just
// restarted may need a moment to answer.
func (c *cluster) requireEqualDigests(n *localcluster.Node, nodes int) {
	c.t.Helper()
	var v verification
	c.until(func() error {
		v = verification{}
		if err := c.Call(c.t.Context(), http.MethodPost, n, "/v1/cluster/verify", &v); err != nil {
			return err
		}
		return v.complete()
	})
	require.True(c.t, v.Equal, "the nodes' states differ: %+v", v)
	require.Len(c.t, v.Digests, nodes)
	for _, d := range v.Digests {
		require.NotEmpty(c.t, d.Digest, "node %s", d.ID)
	}
}

func (c *cluster) addrs() []string {
	var addrs []string
	for _, n := range c.Nodes() {
		addrs = append(addrs, n.HTTP)
	}
	return addrs
}

// tarry runs the binary as a client and gives its output.
func (c *cluster) tarry(args ...string) string {
	c.t.Helper()
	out, err := c.tryTarry(args...)
	require.NoError(c.t, err)
	return out
}

// tryTarry is tarry for a command that may fail, for example while a leader is lost.
func (c *cluster) tryTarry(args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "TARRY_ADDR="+strings.Join(c.addrs(), ","))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tarry %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
