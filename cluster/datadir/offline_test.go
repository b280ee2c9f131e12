package datadir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// No node starts in a directory whose restore was interrupted, and a later restore begins anew.
func TestAnInterruptedRestore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := OpenForRestore(path, "n1", "")
	require.NoError(t, err)
	first := d.ServerID()
	require.NoError(t, ClaimShard(d.Shard(0), first))
	require.NoError(t, d.Close())
	_, err = Open(path, "n1", "")
	require.ErrorContains(t, err, "was interrupted")
	_, err = OpenStopped(path)
	require.ErrorContains(t, err, "was interrupted")

	d, err = OpenForRestore(path, "n1", "")
	require.NoError(t, err)
	require.NotEqual(t, first, d.ServerID())
	require.NoDirExists(t, d.Shard(0))
	require.NoError(t, d.EndRestore())
	require.NoError(t, d.Close())
	for _, open := range []func() (*Dir, error){func() (*Dir, error) { return Open(path, "n1", "") }, func() (*Dir, error) { return OpenStopped(path) }} {
		d, err = open()
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
}

// No node starts in a directory whose recovery was interrupted, but a later recovery opens it.
func TestAnInterruptedRecovery(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d, err := Open(path, "n1", "")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for range 2 {
		d, err = OpenStopped(path)
		require.NoError(t, err)
		require.NoError(t, d.BeginRecovery())
		require.NoError(t, d.Close())
		_, err = Open(path, "n1", "")
		require.ErrorContains(t, err, "a recovery of "+path+" was interrupted")
		_, err = OpenForRestore(path, "n1", "")
		require.ErrorContains(t, err, "is not empty")
	}
	d, err = OpenStopped(path)
	require.NoError(t, err)
	marked, err := d.Recovering()
	require.NoError(t, err)
	require.True(t, marked)
	require.NoError(t, d.EndRecovery())
	require.NoError(t, d.Close())
	d, err = Open(path, "n1", "")
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

func TestARestoreNeedsAnEmptyDirectory(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "mine"), nil, 0o600))
	_, err := OpenForRestore(path, "n1", "")
	require.ErrorContains(t, err, "is not empty: it has mine")
	require.FileExists(t, filepath.Join(path, "mine"))
	_, err = OpenStopped(path)
	require.ErrorContains(t, err, "no data directory of a node")
}
