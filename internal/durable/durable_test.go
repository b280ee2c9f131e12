package durable

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// content returns a file's content after a power failure.
func content(t *testing.T, disk *vfs.MemFS, path string) string {
	t.Helper()
	disk = disk.CrashClone(vfs.CrashCloneCfg{})
	info, err := disk.Stat(path)
	require.NoError(t, err)
	f, err := disk.Open(path)
	require.NoError(t, err)
	data := make([]byte, info.Size())
	_, err = f.ReadAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(data)
}

func TestFilesSurviveAPowerFailure(t *testing.T) {
	disk := vfs.NewCrashableMem()
	require.NoError(t, MkdirAll(disk, "a/b/c"))
	require.NoError(t, MkdirAll(disk, "a/b/c"), "it is there already")
	for _, data := range []string{"first, and longer", "second"} {
		require.NoError(t, Replace(disk, "a/b/c/file", []byte(data)))
		require.Equal(t, data, content(t, disk, "a/b/c/file"))
	}
	names, err := disk.List("a/b/c")
	require.NoError(t, err)
	require.Equal(t, []string{"file"}, names)
}

func TestAFileInTheWayIsAnError(t *testing.T) {
	disk := vfs.NewCrashableMem()
	require.NoError(t, Replace(disk, "file", []byte("x")))
	require.Error(t, MkdirAll(disk, "file/below"))
	require.Error(t, Replace(disk, "missing/file", nil))
	require.Error(t, SyncDir(disk, "missing"))
}
