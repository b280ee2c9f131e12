package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/fsm"
)

// A node that is killed has its state as it was a moment ago, though no snapshot was taken and no
// memtable is full.
func TestTheStateIsFlushedNowAndThen(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) { cfg.files.flushEvery = time.Millisecond })
	c.leader()
	for _, id := range []string{"a", "b", "c"} {
		do(t, c.nodes[0], add(id, "t", 0))
		require.Eventually(t, func() bool {
			// The files may change while they are copied; then the next copy is taken.
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(c.cfgs[0].DataDir, "shard-0", "fsm"))); err != nil {
				return false
			}
			m, err := fsm.Open(dir, fsm.Options{})
			if err != nil {
				return false
			}
			defer func() { require.NoError(t, m.Close()) }()
			v := m.View()
			defer v.Close()
			_, found, err := v.Job(id)
			return err == nil && found
		}, time.Minute, 10*time.Millisecond)
	}
}
