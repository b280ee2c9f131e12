package logstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// raft-wal would remove a segment that is not in its list as a leftover.
func TestAListWithoutAnExistingSegmentIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, logDir, listFile)
	s := openSmall(t, dir)
	require.NoError(t, s.Log.StoreLogs(entries(1, 10, 100)))
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := uint64(11); i < 300; i++ {
		require.NoError(t, s.Log.StoreLogs(entries(i, i, 100)))
	}
	require.NoError(t, s.Close())
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	refused := func(what string) {
		_, err := Open(dir, Options{SegmentBytes: smallSegment, Fatal: func(err error) { t.Error(err) }})
		require.ErrorContains(t, err, "missing or an older copy", what)
	}
	require.NoError(t, os.WriteFile(path, old, 0o600))
	refused("an older copy")
	require.NoError(t, os.Remove(path))
	refused("none")
	require.NoError(t, os.WriteFile(path, now, 0o600))
	s = openSmall(t, dir)
	last, err := s.Log.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 299, last)
	require.NoError(t, s.Close())
}
