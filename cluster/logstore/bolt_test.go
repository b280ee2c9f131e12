package logstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADamagedVoteFileIsAnErrorAndNotACrash(t *testing.T) {
	for _, size := range []int64{1, 4096, 5000, 3 * 4096} {
		dir := t.TempDir()
		s, err := Open(dir, Options{Fatal: func(error) {}})
		require.NoError(t, err)
		for i := range 200 {
			require.NoError(t, s.Stable.Set([]byte{byte(i), 'k'}, make([]byte, 200)))
		}
		require.NoError(t, s.Close())
		path := filepath.Join(dir, stableFile)
		require.NoError(t, checkBolt(path))
		require.NoError(t, os.Truncate(path, size))
		_, err = Open(dir, Options{Fatal: func(error) {}})
		require.ErrorContains(t, err, stableFile, "cut to %d", size)
	}
}
