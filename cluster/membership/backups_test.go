package membership

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/memberpb"
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
		require.Equal(t, c.want, backupReasons(map[raft.ServerID]*memberpb.BackupState{"n1.1": c.n1, "n2.1": c.n2, "n3.1": c.n3}), name)
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
