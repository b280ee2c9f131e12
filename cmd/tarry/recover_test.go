package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/cluster/recovery"
)

// What a recovery loses depends on who has acknowledged writes.
func TestARecoverySaysWhatMayBeLost(t *testing.T) {
	voter := func(id string) recovery.Member { return recovery.Member{ServerID: id, Voter: true} }
	for _, c := range []struct {
		members []recovery.Member
		says    string
	}{
		{[]recovery.Member{voter("n1.a")}, "Nothing is lost"},
		{[]recovery.Member{voter("n1.a"), {ServerID: "n2.b"}}, "Nothing is lost"},
		{[]recovery.Member{voter("n2.b"), {ServerID: "n1.a"}}, "after index 7 are lost"},
		{[]recovery.Member{voter("n2.b")}, "It was no voter"},
		{[]recovery.Member{voter("n1.a"), voter("n2.b"), voter("n3.c")}, "acknowledged by 2 of 3 voters"},
		{nil, "nobody can say"},
	} {
		require.Contains(t, mayBeLost(&recovery.Held{NodeID: "n1", ServerID: "n1.a", LastIndex: 7, Members: c.members}), c.says)
	}
}

// The only voter of a cluster starts as it is, so a second recovery changes nothing. One that was
// interrupted is ended, even if the node is the only voter by then.
func TestTheOnlyVoterNeedsNoRecovery(t *testing.T) {
	data := t.TempDir()
	_, _, stop := startServer(t, "--data-dir", data)
	stop()
	recovers := func(flags ...string) string {
		var out, errs bytes.Buffer
		args := append([]string{"recover", "--data-dir", data, "--as-only-voter", "--yes"}, flags...)
		require.Equal(t, exitOK, run(t.Context(), args, strings.NewReader(""), &out, &errs), errs.String())
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
