package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// A node that was removed does not come back by itself: not with its data, not without, and
// not with its valid certificate. An operator can let it in.
func TestARemovedNodeStaysOutUntilItIsAdmitted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	gone, err := c.Add("n4")
	require.NoError(t, err)
	c.certificates()
	c.clusterTLS("require")
	c.start(c.Nodes()...)
	c.waitVoters(c.leader(), "n1", "n2", "n3", "n4")
	post(t, gone.HTTP, "/v1/jobs", object{"topic": "probes", "id": "p", "delay": 3600, "body": "x"})

	c.tarry("cluster", "remove", "n4", "--yes")
	c.waitVoters(c.Nodes()[0], "n1", "n2", "n3")
	require.Contains(t, c.tarry("cluster", "removed"), "n4")
	c.kill(gone)
	require.NoError(t, gone.Start())
	c.awaitReason(gone, "the node has been removed from its cluster")
	c.awaitHealthReason("n4 was removed from the cluster at ")

	c.kill(gone)
	require.NoError(t, gone.Wipe())
	require.NoError(t, gone.Start())
	c.awaitReason(gone, "tarry cluster admit n4")
	c.awaitHealthReason(`n4 is alive but cannot be taken in: node n4 was removed from the cluster at `)

	// The record outlives the processes.
	c.kill(c.Nodes()[:3]...)
	c.start(c.Nodes()[:3]...)
	c.waitVoters(c.leader(), "n1", "n2", "n3")
	c.awaitReason(gone, "tarry cluster admit n4")

	require.Contains(t, c.tarry("cluster", "admit", "n4"), "admitted\n")
	c.waitVoters(c.leader(), "n1", "n2", "n3", "n4")
	c.waitReady(gone)
	c.requireEqualDigests(c.leader(), 4)
}

// awaitReason waits until a node is not ready for a reason.
func (c *cluster) awaitReason(n *localcluster.Node, reason string) {
	c.t.Helper()
	c.until(func() error {
		err := c.Call(c.t.Context(), http.MethodGet, n, "/readyz", nil)
		if err == nil || !strings.Contains(err.Error(), reason) {
			return fmt.Errorf("%s is not unready because %q: %v", n.ID, reason, err)
		}
		return nil
	})
}

// awaitHealthReason waits until the leader's health has a reason that begins so.
func (c *cluster) awaitHealthReason(reason string) {
	c.t.Helper()
	c.until(func() error {
		var health struct {
			Reasons []string `json:"reasons"`
		}
		if err := c.Call(c.t.Context(), http.MethodGet, c.Nodes()[0], "/v1/cluster/health", &health); err != nil {
			return err
		}
		for _, r := range health.Reasons {
			if strings.HasPrefix(r, reason) {
				return nil
			}
		}
		return fmt.Errorf("health has %q", health.Reasons)
	})
}
