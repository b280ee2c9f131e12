package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
	"tarry/internal/secretkeys"
)

func TestKeysOfGossipAreReadAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gossip.keys")
	parse := func(args string) (*Config, error) { return parseServerConfig(strings.Fields(args), noEnv) }
	c, err := parse("")
	require.NoError(t, err)
	ring, err := c.gossipKeys()
	require.NoError(t, err)
	require.Nil(t, ring)

	c, err = parse("--gossip-keys-file " + file)
	require.NoError(t, err)
	require.Equal(t, gossip.VerifyFull, c.GossipVerify)
	_, err = c.gossipKeys()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "--gossip-keys-file")
	require.NoError(t, gossipkeys.Create(file, gossipkeys.Keys{List: []gossipkeys.Key{gossipkeys.New()}}))
	ring, err = c.gossipKeys()
	require.NoError(t, err)
	require.Len(t, ring.Keys().List, 1)

	_, err = parse("--gossip-verify outgoing")
	require.ErrorContains(t, err, "needs --gossip-keys-file")
	_, err = parse("--gossip-addr 0.0.0.0:7302 --gossip-verify outgoing --gossip-keys-file " + file)
	require.ErrorContains(t, err, "--insecure", "the port is open until the last step")
	_, err = parse("--gossip-addr 0.0.0.0:7302 --gossip-keys-file " + file)
	require.NoError(t, err)
}

func TestKeysOfSecretsAreReadAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets.keys")
	parse := func(args string) *Config {
		c, err := parseServerConfig(strings.Fields(args), noEnv)
		require.NoError(t, err)
		return c
	}
	ring, err := parse("").secretKeys()
	require.NoError(t, err)
	require.Nil(t, ring)
	c := parse("--secrets-key-file " + file)
	_, err = c.secretKeys()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "--secrets-key-file")
	require.NoError(t, secretkeys.Create(file, secretkeys.NewKey()))
	ring, err = c.secretKeys()
	require.NoError(t, err)
	require.Len(t, ring.IDs(), 1)
}
