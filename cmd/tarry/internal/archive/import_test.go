package archive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// Any line is understood or refused by an error that says why, and what is understood is
// written as it was read.
func FuzzExportedLine(f *testing.F) {
	files, err := filepath.Glob("../../testdata/export-*.ndjson")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		for line := range strings.Lines(string(text)) {
			f.Add([]byte(line))
		}
	}
	f.Add([]byte(`{"type":"job","id":"$0-1","created_at":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"type":"schedule","schedule":"s","job":{"backoff":[1]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if _, err := decodeHead(line); err != nil {
			require.NotEmpty(t, err.Error())
		}
		kind, v, err := decodeExported(line)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if j, is := v.(*exportedJob); is {
			new(fileImport).adapt(&j.ImportedJob)
			require.False(t, strings.HasPrefix(j.ID, "$"))
		}
		difference, err := firstDifference(v, v)
		require.NoError(t, err)
		require.Empty(t, difference)
		require.True(t, kind == kindEnd || new(exportCounts).of(kind) != nil)
	})
}

func TestTheAttemptUnderWayCountsUnlessItIsTheLast(t *testing.T) {
	all := &everything{}
	for _, tt := range []struct{ attempts, most, want uint32 }{{1, 3, 1}, {3, 3, 2}, {9, 0, 9}} {
		j := all.jobLine(&client.Job{State: "reserved", Attempts: tt.attempts, MaxAttempts: tt.most})
		require.Equal(t, client.StateReady, j.State)
		require.Equal(t, tt.want, j.Attempts)
	}
	require.Equal(t, uint32(3), all.jobLine(&client.Job{State: "dead", Attempts: 3, MaxAttempts: 3}).Attempts)
}
