package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

const restorePath = "/v1/cluster/restore"

func TestTheOptionsOfARestore(t *testing.T) {
	r := newRig(t)
	for _, bad := range []string{"?from_now=1", "?dry_run=yes", "?auth=drop"} {
		refused(t, r.do("POST", restorePath+bad, "x"), 400, job.CodeInvalid, "it takes")
	}
	require.Empty(t, r.operator.Calls())
	require.Equal(t, 200, r.do("POST", restorePath+"?from_now=true&auth=reset&cluster=k3vq", "the backup").Code)
	require.Equal(t, []string{"restore the backup {FromNow:true ResetAuth:true DryRun:false Cluster:k3vq}"}, r.operator.Calls())
}

func TestABaseIsReadOrRefused(t *testing.T) {
	r := newRig(t)
	refused(t, r.do("POST", backupPath, "tarry-base 2 x"), 400, job.CodeInvalid, "tarry-base 1")
	refused(t, r.do("POST", backupPath, "tarry-base 1 00 5 store\nname\n000001.sst -1\n"), 400, job.CodeInvalid, "its size")
	w := r.do("POST", backupPath, "tarry-base 1 00 5 store\nname\n000001.sst 17\n")
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "since 00 with 1 files of the store store")
}
