package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
)

// The only voter of a cluster starts as it is, so a second recovery changes nothing. One that was
// interrupted is ended, even if the node is the only voter by then.
func TestTheOnlyVoterNeedsNoRecovery(t *testing.T) {
	data := t.TempDir()
	_, _, stop := startServer(t, "--data-dir", data)
	stop()
	recovers := func(flags ...string) string {
		var out, errs bytes.Buffer
		args := append([]string{"recover", "--data-dir", data, "--as-only-voter", "--yes"}, flags...)
		require.Equal(t, cli.ExitOK, run(t.Context(), args, strings.NewReader(""), &out, &errs), errs.String())
		return out.String()
	}
	cluster := func() string {
		h, err := recovery.Inspect(data)
		require.NoError(t, err)
		require.False(t, h.Interrupted)
		return h.ClusterID
	}
	first := cluster()
	require.Contains(t, recovers(), "nothing was done: n1 is the only voter of its cluster already")
	require.Contains(t, recovers("--dry-run"), "there is nothing to recover")
	require.NotContains(t, recovers("--json"), "new_cluster_id")
	require.Contains(t, recovers("--force", "--dry-run"), "would be the only voter of a new cluster")
	require.Equal(t, first, cluster())

	require.Contains(t, recovers("--force"), "only voter of the new cluster")
	forced := cluster()
	require.NotEqual(t, first, forced)
	require.Contains(t, recovers(), "there is nothing to recover")
	require.Equal(t, forced, cluster())

	dir, err := datadir.OpenStopped(data)
	require.NoError(t, err)
	require.NoError(t, dir.BeginRecovery())
	require.NoError(t, dir.Close())
	require.Contains(t, recovers(), "only voter of the new cluster")
	require.NotEqual(t, forced, cluster())
}
