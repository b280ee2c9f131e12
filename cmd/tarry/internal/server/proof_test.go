package server

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
	f := &ResetFile{Dir: dir}
	nonce := func() string {
		p, err := f.Read()
		require.NoError(t, err)
		return p.Nonce
	}
	require.False(t, f.Holds(""))
	_, err := f.Use("")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, f.Make(time.Now()))
	first := nonce()
	require.True(t, f.Holds(first))
	require.False(t, f.Holds(first[1:]))
	require.False(t, f.Holds(""))
	unused, err := f.Use(first)
	require.NoError(t, err)
	require.True(t, unused)

	restarted := &ResetFile{Dir: dir}
	unused, err = restarted.Use(first)
	require.NoError(t, err)
	require.False(t, unused)
	require.True(t, restarted.Holds(first), "its reply may have been lost")
	require.NoError(t, restarted.Undo(first))
	unused, err = f.Use(first)
	require.NoError(t, err)
	require.True(t, unused)

	require.NoError(t, f.Make(time.Now()))
	require.NotEqual(t, first, nonce())
	require.False(t, f.Holds(first))
	unused, err = f.Use(first)
	require.NoError(t, err)
	require.False(t, unused)
	require.NoError(t, f.Undo(first))
	unused, err = f.Use(nonce())
	require.NoError(t, err)
	require.True(t, unused)

	require.NoError(t, f.Make(time.Now().Add(-api.ResetTime)))
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
	require.NoError(t, MakeBootstrapSecret(dir))
	before, err := os.ReadFile(filepath.Join(dir, api.BootstrapFile))
	require.NoError(t, err)
	require.NoError(t, MakeBootstrapSecret(dir))
	after, err := os.ReadFile(filepath.Join(dir, api.BootstrapFile))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.True(t, ChecksBootstrap(dir)(strings.TrimSpace(string(after))))
	require.False(t, ChecksBootstrap(dir)(""))
	require.NoError(t, (&ResetFile{Dir: dir}).Make(time.Now()))
	for _, name := range []string{api.BootstrapFile, api.ResetFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestANonceIsGoodForAnHourByTheClock(t *testing.T) {
	f := &ResetFile{Dir: t.TempDir()}
	for age, holds := range map[time.Duration]bool{0: true, api.ResetTime - time.Minute: true, api.ResetTime: false, -time.Hour: false} {
		require.NoError(t, f.Make(time.Now().Add(-age)))
		p, err := f.Read()
		require.NoError(t, err)
		require.Equal(t, holds, f.Holds(p.Nonce), "%v", age)
	}
}
