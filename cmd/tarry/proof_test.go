package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
)

func TestANonceIsOfOneUse(t *testing.T) {
	dir := t.TempDir()
	f := &resetFile{dir: dir}
	nonce := func() string {
		p, err := f.read()
		require.NoError(t, err)
		return p.Nonce
	}
	require.False(t, f.Holds(""))
	_, err := f.Use("")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, f.make(time.Now()))
	first := nonce()
	require.True(t, f.Holds(first))
	require.False(t, f.Holds(first[1:]))
	require.False(t, f.Holds(""))
	unused, err := f.Use(first)
	require.NoError(t, err)
	require.True(t, unused)

	restarted := &resetFile{dir: dir}
	unused, err = restarted.Use(first)
	require.NoError(t, err)
	require.False(t, unused)
	require.True(t, restarted.Holds(first), "its reply may have been lost")
	require.NoError(t, restarted.Undo(first))
	unused, err = f.Use(first)
	require.NoError(t, err)
	require.True(t, unused)

	require.NoError(t, f.make(time.Now()))
	require.NotEqual(t, first, nonce())
	require.False(t, f.Holds(first))
	unused, err = f.Use(first)
	require.NoError(t, err)
	require.False(t, unused)
	require.NoError(t, f.Undo(first))
	unused, err = f.Use(nonce())
	require.NoError(t, err)
	require.True(t, unused)

	require.NoError(t, f.make(time.Now().Add(-api.ResetTime)))
	require.False(t, f.Holds(nonce()), "a forgotten nonce opens nothing")
	require.NoError(t, f.write(resetProof{Made: time.Now()}))
	require.False(t, f.Holds(""))
	require.NoError(t, os.WriteFile(f.path(), []byte("{"), 0o600))
	require.False(t, f.Holds(""))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestProofsAreForTheOwnerOfTheDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, makeBootstrapSecret(dir))
	before, err := os.ReadFile(filepath.Join(dir, api.BootstrapFile))
	require.NoError(t, err)
	require.NoError(t, makeBootstrapSecret(dir))
	after, err := os.ReadFile(filepath.Join(dir, api.BootstrapFile))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.True(t, checksBootstrap(dir)(strings.TrimSpace(string(after))))
	require.False(t, checksBootstrap(dir)(""))
	require.NoError(t, (&resetFile{dir: dir}).make(time.Now()))
	for _, name := range []string{api.BootstrapFile, api.ResetFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestTheWayBackIn(t *testing.T) {
	s := closedShell(t)
	code, _, errs := s.run("auth", "reset", "--data-dir", "none")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "--data-dir")
	s.ok("auth", "bootstrap", "-o", "lost.token")
	t.Setenv(tokenFileEnv, "lost.token")
	s.ok("auth", "mode", "enforce")
	t.Setenv(tokenFileEnv, "")
	require.NotEqual(t, exitOK, first(s.run("token", "list")))

	require.Contains(t, s.ok("auth", "reset"), "tarry auth bootstrap --data-dir tarry-data")
	s.ok("auth", "bootstrap", "-o", "root.token")
	s.ok("auth", "bootstrap", "-o", "again.token")
	root, err := os.ReadFile("root.token")
	require.NoError(t, err)
	repeated, err := os.ReadFile("again.token")
	require.NoError(t, err)
	require.Equal(t, root, repeated)
	code, _, errs = s.run("auth", "bootstrap", "other")
	require.NotEqual(t, exitOK, code)
	require.Contains(t, errs, "used already")
	require.NotEqual(t, exitOK, first(s.run("--token-file", "lost.token", "token", "list")))
	require.Contains(t, s.ok("--token-file", "root.token", "auth", "mode"), "enforce")
	require.Contains(t, s.ok("auth", "reset", "--json"), `"data_dir":"tarry-data"`)
	s.ok("auth", "bootstrap", "other", "-o", "other.token")
	require.Contains(t, s.ok("--token-file", "other.token", "token", "list"), "root")
}

func first(code int, _, _ string) int { return code }

func TestANonceIsGoodForAnHourByTheClock(t *testing.T) {
	f := &resetFile{dir: t.TempDir()}
	for age, holds := range map[time.Duration]bool{0: true, api.ResetTime - time.Minute: true, api.ResetTime: false, -time.Hour: false} {
		require.NoError(t, f.make(time.Now().Add(-age)))
		p, err := f.read()
		require.NoError(t, err)
		require.Equal(t, holds, f.Holds(p.Nonce), "%v", age)
	}
}

func TestAnOldNonceDoesNotHideTheProofOfANewCluster(t *testing.T) {
	s := closedShell(t)
	s.ok("auth", "reset")
	require.NoError(t, (&resetFile{dir: "tarry-data"}).make(time.Now().Add(-2*api.ResetTime)))
	code, _, errs := s.run("auth", "bootstrap", "-o", "root.token")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "the nonce of tarry auth reset is not used")
}

// Root may read the directory, which another user owns.
func TestAProofIsNoLink(t *testing.T) {
	s := closedShell(t)
	path := filepath.Join("tarry-data", api.BootstrapFile)
	require.NoError(t, os.Rename(path, "elsewhere"))
	require.NoError(t, os.Symlink(filepath.Join("..", "elsewhere"), path))
	code, _, errs := s.run("auth", "bootstrap")
	require.Equal(t, exitUsage, code)
	require.NotContains(t, errs, "token")
}
