package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossipkeys"
	"tarry/cmd/tarry/internal/cli"
)

func TestKeygenMakesKeysAndOverwritesNone(t *testing.T) {
	s, file := newShell(t), filepath.Join(t.TempDir(), "gossip.keys")
	printed := s.OK("keygen")
	keys, err := gossipkeys.Parse([]byte(printed))
	require.NoError(t, err)
	require.NotEqual(t, printed, s.OK("keygen"))

	shown := s.OK("keygen", file)
	made, err := gossipkeys.Read(file)
	require.NoError(t, err)
	require.NotEqual(t, keys, made)
	require.Contains(t, shown, made.List[0].Fingerprint())
	require.NotContains(t, shown, made.List[0].Secret())
	code, _, errs := s.Run("keygen", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "nothing is overwritten")
	code, _, errs = s.Run("keygen", file, file)
	require.Equal(t, cli.ExitUsage, code, errs)
}
