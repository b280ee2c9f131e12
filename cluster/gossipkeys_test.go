package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/nodetls"
	"tarry/cluster/report"
	"tarry/internal/certs/certstest"
)

// secure gives a node a certificate and a file with gossip keys.
func secure(t *testing.T, cfg *Config, ca *certstest.Authority, keys gossipkeys.Keys) {
	id, err := nodetls.Open(ca.Node(cfg.NodeID), cfg.NodeID)
	require.NoError(t, err)
	cfg.TLS = nodetls.Config{Mode: nodetls.Require, Identity: id}
	file := filepath.Join(t.TempDir(), "gossip.keys")
	require.NoError(t, gossipkeys.Create(file, keys))
	cfg.GossipKeys, err = gossipkeys.Open(file)
	require.NoError(t, err)
}

// The calls with keys pass the checks of the cluster port. A gossip key alone does not admit
// a node: it needs a certificate of the cluster's authority.
func TestKeysTravelOverTLSAndAdmitNobody(t *testing.T) {
	ca, keys := certstest.New(t, "orders"), gossipkeys.Keys{List: []gossipkeys.Key{gossipkeys.New()}}
	c := newTunedCluster(t, 3, func(i int, cfg *Config) { secure(t, cfg, ca, keys) })
	c.eventually(func() bool {
		members, err := c.nodes[0].Members(t.Context())
		return err == nil && len(members) == 3
	}, "three members")
	c.eventually(func() bool {
		_, err := c.nodes[1].ChangeKeyring(t.Context(), report.KeyringChange_INSTALL, "")
		return err == nil
	}, "a key is installed")
	c.eventually(func() bool {
		k, err := c.nodes[2].Keyring(t.Context())
		return err == nil && k.Current() == 3 && len(k.Ring.Fingerprints) >= 2
	}, "all have it")

	stranger := c.cfgs[0]
	ports := freePorts(t, 2)
	stranger.NodeID, stranger.DataDir, stranger.BootstrapExpect = "n4", t.TempDir(), 0
	stranger.ClusterAddr, stranger.GossipAddr = ports[0], ports[1]
	secure(t, &stranger, certstest.New(t, "orders"), c.cfgs[0].GossipKeys.Keys())
	c.cfgs, c.nodes = append(c.cfgs, stranger), append(c.nodes, nil)
	c.start(3)
	c.eventually(func() bool {
		h, err := c.nodes[0].Health(t.Context())
		return err == nil && strings.Contains(strings.Join(h.Reasons, "; "), "n4 is alive but cannot be taken in")
	}, "the leader refuses n4")
	members, err := c.nodes[0].Members(t.Context())
	require.NoError(t, err)
	require.Len(t, members, 3)
}
