package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/server"
)

func TestTheWayBackIn(t *testing.T) {
	s := closedShell(t)
	code, _, errs := s.Run("auth", "reset", "--data-dir", "none")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--data-dir")
	s.OK("auth", "bootstrap", "-o", "lost.token")
	t.Setenv(cli.TokenFileEnv, "lost.token")
	s.OK("auth", "mode", "enforce")
	t.Setenv(cli.TokenFileEnv, "")
	require.NotEqual(t, cli.ExitOK, first(s.Run("token", "list")))

	require.Contains(t, s.OK("auth", "reset"), "tarry auth bootstrap --data-dir tarry-data")
	s.OK("auth", "bootstrap", "-o", "root.token")
	s.OK("auth", "bootstrap", "-o", "again.token")
	root, err := os.ReadFile("root.token")
	require.NoError(t, err)
	repeated, err := os.ReadFile("again.token")
	require.NoError(t, err)
	require.Equal(t, root, repeated)
	code, _, errs = s.Run("auth", "bootstrap", "other")
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "used already")
	require.NotEqual(t, cli.ExitOK, first(s.Run("--token-file", "lost.token", "token", "list")))
	require.Contains(t, s.OK("--token-file", "root.token", "auth", "mode"), "enforce")
	require.Contains(t, s.OK("auth", "reset", "--json"), `"data_dir":"tarry-data"`)
	s.OK("auth", "bootstrap", "other", "-o", "other.token")
	require.Contains(t, s.OK("--token-file", "other.token", "token", "list"), "root")
}

func first(code int, _, _ string) int { return code }

func TestAnOldNonceDoesNotHideTheProofOfANewCluster(t *testing.T) {
	s := closedShell(t)
	s.OK("auth", "reset")
	require.NoError(t, (&server.ResetFile{Dir: "tarry-data"}).Make(time.Now().Add(-2*api.ResetTime)))
	code, _, errs := s.Run("auth", "bootstrap", "-o", "root.token")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "the nonce of tarry auth reset is not used")
}

// Root may read the directory, which another user owns.
func TestAProofIsNoLink(t *testing.T) {
	s := closedShell(t)
	path := filepath.Join("tarry-data", api.BootstrapFile)
	require.NoError(t, os.Rename(path, "elsewhere"))
	require.NoError(t, os.Symlink(filepath.Join("..", "elsewhere"), path))
	code, _, errs := s.Run("auth", "bootstrap")
	require.Equal(t, cli.ExitUsage, code)
	require.NotContains(t, errs, "token")
}
