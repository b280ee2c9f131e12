package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	condition "tarry/cluster/report"
)

func TestBackupsAreListed(t *testing.T) {
	s := newShell(t)
	code, out, errs := s.run("backup", "list")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "tarry-20231114T221300Z-000000000042.backup  2023-11-14T22:13:01.000Z  42     47.1 KiB  incremental  n1,n2  yes\n")
	require.Contains(t, out, "tarry-20231113T221300Z-000000000017.backup  -                         17     512 B     -            n2     no: the backup is damaged: it ends early")
	require.Contains(t, errs, "n2 has 3 older backups, which are not listed")
	require.Contains(t, errs, "n3: it does not reply")
	require.Contains(t, errs, "1 of 2 backups cannot be restored")

	code, out, _ = s.run("backup", "list", "--json")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, `"verified":false`)

	s.operator.Backups = &condition.ScheduledBackups{Nodes: []*condition.NodeBackups{{Id: "n1"}}}
	code, out, errs = s.run("backup", "list")
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, "no node has a --backup-schedule\n", out)
	s.operator.Backups.Nodes[0].Scheduled = true
	code, out, errs = s.run("backup", "list")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "NAME")
}
