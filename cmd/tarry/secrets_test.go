package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/secretkeys"
)

func TestKeysOfSecretsAreMadeAndOverwriteNone(t *testing.T) {
	s, file := newShell(t), filepath.Join(t.TempDir(), "secrets.keys")
	printed := s.ok("secrets", "keygen")
	keys, err := secretkeys.Parse([]byte(printed))
	require.NoError(t, err)
	require.Len(t, keys, 1)

	shown := s.ok("secrets", "keygen", file)
	made, err := secretkeys.Open(file)
	require.NoError(t, err)
	require.Equal(t, "key "+made.IDs()[0]+": "+file+"\n", shown)
	about, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), about.Mode().Perm())
	code, _, errs := s.run("secrets", "keygen", file)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "nothing is overwritten")
}

func TestKeysOfSecretsAreReadAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets.keys")
	parse := func(args string) *serverConfig {
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

func TestTheKeysOfANodeAreListed(t *testing.T) {
	s := closedShell(t)
	s.ok("auth", "bootstrap", "-o", "root.token")
	t.Setenv(tokenFileEnv, "root.token")
	require.Contains(t, s.ok("secrets", "list"), "KEY")
	require.Contains(t, s.ok("secrets", "list", "--json"), `"plain":0`)
	code, _, errs := s.run("secrets", "rewrap")
	require.NotEqual(t, exitOK, code)
	require.Contains(t, errs, "--secrets-key-file")
}
