package cluster

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

func TestANodeWithoutDataNeedsTheFileOfItsInvitation(t *testing.T) {
	c := newTestCluster(t, 1)
	c.leader()
	dir := t.TempDir()
	missing, readable := filepath.Join(dir, "missing"), filepath.Join(dir, "readable")
	require.NoError(t, os.WriteFile(readable, []byte("x"), 0o600))
	require.NoError(t, os.Chmod(readable, 0o644))
	for _, file := range []string{missing, readable} {
		ports := freePorts(t, 2)
		_, err := Start(Config{
			NodeID: "n2", DataDir: t.TempDir(), Version: "test", ClusterAddr: ports[0], GossipAddr: ports[1], HTTPAdvertise: "127.0.0.1:1",
			Join: []string{c.cfgs[0].GossipAddr}, JoinInvitationFile: file, Logger: slog.New(slog.DiscardHandler), Fatal: func(error) {},
		})
		require.ErrorContains(t, err, "the invitation (--join-invitation-file): ")
	}
	// A member starts without it.
	c.stop(0)
	c.cfgs[0].JoinInvitationFile = missing
	c.start(0)
	c.leader()
}

// Tokens do not bind a node, so it is not enough that clients need one.
func TestANodeWarnsWhileTokensKeepOnlyClientsOut(t *testing.T) {
	c := newTestCluster(t, 1)
	n := c.nodes[c.leader()]
	do := func(ctx context.Context, op *jobpb.Op) {
		t.Helper()
		rs, err := n.shard.Do(ctx, []*jobpb.Op{op})
		require.NoError(t, err)
		require.NoError(t, job.ResultError(rs[0]))
	}
	admission := func(mode jobpb.AdmissionMode) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_SetAdmission{SetAdmission: &jobpb.SetAdmission{Mode: mode}}}
	}
	const warning = "any node that finds the cluster becomes a member"
	first := putToken(t, "root", []string{"*"}, auth.VerbNames())
	first.GetPutToken().Bootstrap = true
	do(t.Context(), first)
	require.NotContains(t, joined(n.warnings()), warning)
	root := auth.NewContext(t.Context(), auth.TokenPrincipal("root"))
	do(root, setAuthMode(jobpb.AuthMode_AUTH_ENFORCE))
	require.Contains(t, joined(n.warnings()), warning)
	do(root, admission(jobpb.AdmissionMode_ADMISSION_INVITED))
	require.NotContains(t, joined(n.warnings()), warning)
	require.Equal(t, jobpb.AdmissionMode_ADMISSION_INVITED, n.AdmissionMode())
	rs, err := n.shard.Do(t.Context(), []*jobpb.Op{admission(jobpb.AdmissionMode_ADMISSION_OPEN)})
	require.NoError(t, err)
	require.Equal(t, jobpb.Code_FORBIDDEN, rs[0].Code, "a client without a token opens nothing")
}

func joined(list []string) string {
	text := ""
	for _, line := range list {
		text += line + "\n"
	}
	return text
}
