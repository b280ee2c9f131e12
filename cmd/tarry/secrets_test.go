package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/secretkeys"
)

func TestKeysOfSecretsAreMadeAndOverwriteNone(t *testing.T) {
	s, file := newShell(t), filepath.Join(t.TempDir(), "secrets.keys")
	printed := s.OK("secrets", "keygen")
	keys, err := secretkeys.Parse([]byte(printed))
	require.NoError(t, err)
	require.Len(t, keys, 1)

	shown := s.OK("secrets", "keygen", file)
	made, err := secretkeys.Open(file)
	require.NoError(t, err)
	require.Equal(t, "key "+made.IDs()[0]+": "+file+"\n", shown)
	about, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), about.Mode().Perm())
	code, _, errs := s.Run("secrets", "keygen", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "nothing is overwritten")
}

func TestTheKeysOfANodeAreListed(t *testing.T) {
	s := closedShell(t)
	s.OK("auth", "bootstrap", "-o", "root.token")
	t.Setenv(cli.TokenFileEnv, "root.token")
	require.Contains(t, s.OK("secrets", "list"), "KEY")
	require.Contains(t, s.OK("secrets", "list", "--json"), `"plain":0`)
	code, _, errs := s.Run("secrets", "rewrap")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "--secrets-key-file")
}
