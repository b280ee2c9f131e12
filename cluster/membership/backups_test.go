package membership

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
)

func TestReasonsOfBackups(t *testing.T) {
	well, fails := &memberpb.BackupState{InstantMs: 1}, &memberpb.BackupState{Trouble: "n3 cannot write"}
	lacks := "n1 has no --backup-schedule, and other nodes have one: while it leads, no backups are made"
	for name, c := range map[string]struct {
		n1, n2, n3 *memberpb.BackupState
		want       []string
	}{
		"no schedule":       {},
		"all have one":      {well, well, well, nil},
		"one fails":         {well, well, fails, []string{"n3 cannot write"}},
		"one has none":      {nil, well, well, []string{lacks}},
		"and another fails": {nil, well, fails, []string{lacks, "n3 cannot write"}},
	} {
		h := report.Health{Problems: backupProblems(map[raft.ServerID]*memberpb.BackupState{"n1.1": c.n1, "n2.1": c.n2, "n3.1": c.n3})}
		h.Conclude()
		require.ElementsMatch(t, c.want, h.Reasons, name)
	}
}

func TestOnlyServersThatReportedHaveAReport(t *testing.T) {
	var b memberBackups
	b.record("n1.1", nil)
	b.record("n2.1", &memberpb.BackupState{InstantMs: 5})
	b.record("n9.1", &memberpb.BackupState{InstantMs: 9}) // was removed
	got := b.reports([]raft.Server{{ID: "n1.1"}, {ID: "n2.1"}, {ID: "n3.1"}})
	require.Len(t, got, 2)
	require.Contains(t, got, raft.ServerID("n1.1"))
	require.EqualValues(t, 5, got["n2.1"].InstantMs)
}

// Nodes that share a directory list the same files. Two leaders that make the backup of one
// instant on their own disks make two files of one name.
func TestBackupsOfAllNodesAreOneList(t *testing.T) {
	file := func(index uint64, takenMS int64, problem string) *report.ScheduledBackup {
		return &report.ScheduledBackup{Name: "b", Index: index, InstantMs: 1000, TakenMs: takenMS, Bytes: 9, Problem: problem}
	}
	all := mergeBackups([]*report.NodeBackups{
		{Id: "n3", Scheduled: true, More: 4, Files: []*report.ScheduledBackup{file(8, 2000, ""), file(7, 1000, "")}},
		{Id: "n1", Scheduled: true, Files: []*report.ScheduledBackup{file(9, 3000, ""), file(8, 2000, ""), file(7, 1001, "")}},
		{Id: "n2", Error: "it does not reply"},
	})
	var got []string
	for _, b := range all.Backups {
		got = append(got, fmt.Sprint(b.Index, b.TakenMs, b.Nodes))
	}
	require.Equal(t, []string{"9 3000 [n1]", "8 2000 [n1 n3]", "7 1001 [n1]", "7 1000 [n3]"}, got)
	require.Len(t, all.Nodes, 3)
	require.Equal(t, "n2", all.Nodes[1].Id)
	require.Equal(t, "it does not reply", all.Nodes[1].Error)
	require.EqualValues(t, 4, all.Nodes[2].More)

	damaged := mergeBackups([]*report.NodeBackups{{Id: "n1", Files: []*report.ScheduledBackup{file(7, 0, "it ends early")}}})
	require.Zero(t, damaged.Backups[0].TakenMs)
	require.Equal(t, "it ends early", damaged.Backups[0].Problem)
}
