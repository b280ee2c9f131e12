package membership

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
	"tarry/job"
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
	file := func(index uint64, takenMS int64, problem string) *memberpb.BackupFile {
		return &memberpb.BackupFile{Name: "b", Index: index, InstantMs: 1000, TakenMs: takenMS, Bytes: 9, Problem: problem}
	}
	all := mergeBackups([]string{"n3", "n1", "n2"}, []*memberpb.BackupsResponse{
		{Scheduled: true, More: 4, Files: []*memberpb.BackupFile{file(8, 2000, ""), file(7, 1000, "")}},
		{Scheduled: true, Files: []*memberpb.BackupFile{file(9, 3000, ""), file(8, 2000, ""), file(7, 1001, "")}},
		{Error: "it does not reply"},
	})
	want := func(index uint64, takenMS int64, nodes ...string) job.ScheduledBackup {
		return job.ScheduledBackup{Name: "b", Index: index, Instant: time.UnixMilli(1000), Taken: time.UnixMilli(takenMS), Bytes: 9, Nodes: nodes}
	}
	require.Equal(t, job.ScheduledBackups{
		Backups: []job.ScheduledBackup{want(9, 3000, "n1"), want(8, 2000, "n1", "n3"), want(7, 1001, "n1"), want(7, 1000, "n3")},
		Nodes:   []job.NodeBackups{{ID: "n1", Scheduled: true}, {ID: "n2", Error: "it does not reply"}, {ID: "n3", Scheduled: true, More: 4}},
	}, all)

	damaged := mergeBackups([]string{"n1"}, []*memberpb.BackupsResponse{{Files: []*memberpb.BackupFile{file(7, 0, "it ends early")}}})
	require.True(t, damaged.Backups[0].Taken.IsZero())
	require.Equal(t, "it ends early", damaged.Backups[0].Problem)
}
