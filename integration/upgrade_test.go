package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/job"
)

// buildNext builds the release after this one, as far as tests need it: job/next.go.
func buildNext(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "tarry-next")
	build := exec.Command("go", "build", "-tags", "chaos,next", "-o", path, "tarry/cmd/tarry")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// followersFirst lists the nodes in the order of a rolling restart.
func (c *cluster) followersFirst() []*localcluster.Node {
	leader := c.leader()
	var nodes []*localcluster.Node
	for _, n := range c.Nodes() {
		if n != leader {
			nodes = append(nodes, n)
		}
	}
	return append(nodes, leader)
}

// roll restarts the nodes one after the other with a binary, as docs/operations.md
// says, and calls between after each.
func (c *cluster) roll(binary string, between func(*localcluster.Node)) {
	c.t.Helper()
	for _, n := range c.followersFirst() {
		c.terminate(n)
		n.SetBinary(binary)
		require.NoError(c.t, n.Start())
		c.waitReady(n)
		c.waitHealthy(n)
		between(n)
	}
}

func (c *cluster) waitHealthy(n *localcluster.Node) {
	c.t.Helper()
	c.until(func() error {
		var h struct {
			Healthy bool
			Reasons []string
		}
		if err := c.Get(c.t.Context(), n, "/v1/cluster/health", &h); err != nil || h.Healthy {
			return err
		}
		return fmt.Errorf("not healthy: %v", h.Reasons)
	})
}

func (c *cluster) terminate(n *localcluster.Node) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	require.NoError(c.t, n.Terminate(ctx))
}

// versions are the cluster versions that the nodes' states have come to.
func (c *cluster) versions(n *localcluster.Node) (all []uint32) {
	c.t.Helper()
	members, err := c.Members(c.t.Context(), n)
	require.NoError(c.t, err)
	for _, m := range members {
		all = append(all, m.ClusterVersion)
	}
	return all
}

// waitVersion waits until the states of all nodes have a cluster version.
func (c *cluster) waitVersion(want int) {
	c.t.Helper()
	c.until(func() error {
		for _, n := range c.Nodes() {
			if got, migrating := c.metric(n, "tarry_cluster_version"), c.metric(n, `tarry_state_migrating{shard="0"}`); got != fmt.Sprint(want) || migrating != "0" {
				return fmt.Errorf("%s has version %s, migrating %s", n.ID, got, migrating)
			}
		}
		return nil
	})
}

// stampRefused proves that what the next release has more is not proposed yet.
func (c *cluster) stampRefused(n *localcluster.Node, id string) {
	c.t.Helper()
	for _, query := range []string{"", "?stamps=1"} {
		_, err := c.stamp(n, id, query)
		require.ErrorContains(c.t, err, "503 Service Unavailable")
		require.ErrorContains(c.t, err, "not_applied")
		require.ErrorContains(c.t, err, fmt.Sprintf("needs cluster version %d, and the cluster has version %d until all of its nodes are upgraded", job.MaxVersion+1, job.MaxVersion))
	}
}

// stamp makes the call that the next release has more and returns the job's stamps.
func (c *cluster) stamp(n *localcluster.Node, id, query string) (int, error) {
	var answer struct{ Stamps int }
	err := c.Call(c.t.Context(), http.MethodPost, n, "/v1/jobs/"+id+"/stamp"+query, &answer)
	return answer.Stamps, err
}

// A release runs beside the one before, opens its data, and can be taken back until
// the version is raised; then all that is new works and the older one is refused.
func TestRollingUpgradeAndTheWayBack(t *testing.T) {
	t.Parallel()
	next := buildNext(t)
	c := startCluster(t, 3)
	c.waitVersion(job.MaxVersion)
	probes := []string{"p0", "p1", "p2"}
	for _, id := range probes {
		post(t, c.leader().HTTP, "/v1/jobs", object{"topic": "probes", "id": id, "delay": 3600, "body": id})
	}
	l := startLoad(t, c.addrs())
	hold := func(value string) {
		for _, n := range c.Nodes() {
			n.Setenv("TARRY_HOLD_VERSION", value)
		}
	}

	// All the way up, held, and back.
	hold("true")
	c.roll(next, func(n *localcluster.Node) {
		c.stampRefused(n, probes[0])
		require.Equal(t, []uint32{job.MaxVersion, job.MaxVersion, job.MaxVersion}, c.versions(n))
	})
	require.Contains(t, c.tarry("cluster", "health"), "--hold-version")
	c.requireEqualDigests(c.leader(), 3)
	hold("")
	c.roll(binary, func(n *localcluster.Node) {
		require.Equal(t, []uint32{job.MaxVersion, job.MaxVersion, job.MaxVersion}, c.versions(n))
	})
	c.requireEqualDigests(c.leader(), 3)

	// Up for good.
	upgraded := 0
	c.roll(next, func(n *localcluster.Node) {
		if upgraded++; upgraded < 3 {
			c.stampRefused(n, probes[0])
		}
	})
	c.waitVersion(job.MaxVersion + 1)
	for i, id := range probes {
		for k, n := range c.Nodes() {
			_, err := c.stamp(n, id, "?stamps=10")
			require.NoError(t, err)
			stamps, err := c.stamp(n, id, "")
			require.NoError(t, err)
			require.Equal(t, 11*(k+1), stamps, "probe %d on %s", i, n.ID)
		}
	}

	c.refusesTheOlderRelease(c.follower(), next)
	r := l.judge()
	t.Logf("operations %d, unknown outcomes %d, worst write gap %v", r.Ops, r.Unknowns(), r.WorstWriteGap)
	c.requireEqualDigests(c.leader(), 3)
}

// refusesTheOlderRelease proves that this release neither starts on the data of the
// next one nor joins its cluster, and that its data is as it was.
func (c *cluster) refusesTheOlderRelease(n *localcluster.Node, next string) {
	t := c.t
	says := fmt.Sprintf("the cluster has version %d, but the node's release runs only %v; start a newer release", job.MaxVersion+1, job.ReleaseVersions())
	c.terminate(n)
	n.SetBinary(binary)
	require.NoError(t, n.Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code, err := n.Wait(ctx)
	require.NoError(t, err)
	require.NotZero(t, code)
	out, err := n.Output()
	require.NoError(t, err)
	require.Contains(t, out, says)
	require.NotContains(t, out, "move ", "the data is sound")

	stranger, err := c.Add("n4")
	require.NoError(t, err)
	require.NoError(t, stranger.Start())
	c.until(func() error {
		out, err := stranger.Output()
		if err == nil && !strings.Contains(out, says) {
			err = fmt.Errorf("it does not say why it is not taken in: %s", out)
		}
		return err
	})
	require.NoError(t, stranger.Kill())
	require.NoError(t, c.Forget(stranger))

	n.SetBinary(next)
	require.NoError(t, n.Start())
	c.waitReady(n)
	members, err := c.Members(t.Context(), n)
	require.NoError(t, err)
	require.Len(t, members, 3)
}

// metric reads a metric of a node; name includes its labels.
func (c *cluster) metric(n *localcluster.Node, name string) string {
	c.t.Helper()
	client := http.Client{Timeout: patience}
	resp, err := client.Get("http://" + n.HTTP + "/metrics")
	require.NoError(c.t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	require.FailNow(c.t, "the node has no such metric", "%s (%v)", name, lines.Err())
	return ""
}
