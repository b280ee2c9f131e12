package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
)

func TestKeygenMakesKeysAndOverwritesNone(t *testing.T) {
	s, file := newShell(t), filepath.Join(t.TempDir(), "gossip.keys")
	printed := s.ok("keygen")
	keys, err := gossipkeys.Parse([]byte(printed))
	require.NoError(t, err)
	require.NotEqual(t, printed, s.ok("keygen"))

	shown := s.ok("keygen", file)
	made, err := gossipkeys.Read(file)
	require.NoError(t, err)
	require.NotEqual(t, keys, made)
	require.Contains(t, shown, made.List[0].Fingerprint())
	require.NotContains(t, shown, made.List[0].Secret())
	code, _, errs := s.run("keygen", file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "nothing is overwritten")
	code, _, errs = s.run("keygen", file, file)
	require.Equal(t, exitUsage, code, errs)
}

func TestKeysOfGossipAreReadAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gossip.keys")
	parse := func(args string) (*serverConfig, error) { return parseServerConfig(strings.Fields(args), noEnv) }
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
