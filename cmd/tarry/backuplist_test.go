package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	condition "tarry/cluster/report"
	"tarry/cmd/tarry/internal/cli"
)

func TestBackupsAreListed(t *testing.T) {
	s := newShell(t)
	code, out, errs := s.Run("backup", "list")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, out, "tarry-20231114T221300Z-000000000042.backup  2023-11-14T22:13:01.000Z  42     47.1 KiB  incremental  n1,n2  yes\n")
	require.Contains(t, out, "tarry-20231113T221300Z-000000000017.backup  -                         17     512 B     -            n2     no: the backup is damaged: it ends early")
	require.Contains(t, errs, "n2 has 3 older backups, which are not listed")
	require.Contains(t, errs, "n3: it does not reply")
	require.Contains(t, errs, "1 of 2 backups cannot be restored")

	code, out, _ = s.Run("backup", "list", "--json")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, out, `"verified":false`)

	s.Operator.Backups = &condition.ScheduledBackups{Nodes: []*condition.NodeBackups{{Id: "n1"}}}
	code, out, errs = s.Run("backup", "list")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, "no node has a --backup-schedule\n", out)
	s.Operator.Backups.Nodes[0].Scheduled = true
	code, out, errs = s.Run("backup", "list")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "NAME")
}
