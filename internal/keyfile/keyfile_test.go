package keyfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileIsMadeForItsOwnerAndNeverOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, Create(path, []byte("one")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.ErrorIs(t, Create(path, []byte("two")), fs.ErrExist)
	data, err := Read(path, 3)
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	_, err = Read(path, 2)
	require.ErrorContains(t, err, "more than 2 bytes")
}

func TestAFileThatOthersMayReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, Create(path, []byte("one")))
	for mode, good := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o660: false, 0o602: false} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := Read(path, 10)
		require.Equal(t, good, err == nil, "%04o: %v", mode, err)
	}
	_, err := Read(filepath.Dir(path), 10)
	require.ErrorContains(t, err, "is no file")
	_, err = Read(path+"2", 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
