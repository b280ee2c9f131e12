package fsm

import (
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func writeFile(t *testing.T, fs vfs.FS, path, content string) {
	t.Helper()
	require.NoError(t, fs.MkdirAll(fs.PathDir(path), 0o750))
	f, err := fs.Create(path, vfsCategory)
	require.NoError(t, err)
	_, err = io.WriteString(f, content)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func TestCurrentGeneration(t *testing.T) {
	tests := map[string]struct {
		files map[string]string // path below the directory -> content
		want  string
		fails string
		left  []string // names in the directory afterwards
	}{
		"fresh directory":                 {want: "gen-000001", left: []string{"CURRENT", "gen-000001"}},
		"first start died before CURRENT": {files: map[string]string{"gen-000001": "dir", "CURRENT.tmp": "gen"}, want: "gen-000001", left: []string{"CURRENT", "gen-000001"}},
		"leftovers are removed": {
			files: map[string]string{
				"CURRENT": "gen-000004\n", "gen-000004/a": "live", "gen-000003/a": "old", "gen-000005/a": "never named",
				"gen-000006.tmp/a": "half", "checkpoint-2/a": "sent", "CURRENT.tmp": "x", "notes.txt": "unknown",
			},
			want: "gen-000004",
			left: []string{"CURRENT", "gen-000004", "notes.txt"},
		},
		"CURRENT lost beside data": {files: map[string]string{"gen-000002/a": "data"}, fails: "CURRENT is missing", left: []string{"gen-000002"}},
		"CURRENT names nothing":    {files: map[string]string{"CURRENT": "\n", "gen-000001/a": "data"}, fails: "damaged", left: []string{"CURRENT", "gen-000001"}},
		"CURRENT cut short":        {files: map[string]string{"CURRENT": "gen-000001", "gen-000001/a": "data"}, fails: "damaged", left: []string{"CURRENT", "gen-000001"}},
		"CURRENT leads outside":    {files: map[string]string{"CURRENT": "../gen-000001\n"}, fails: "damaged", left: []string{"CURRENT"}},
		"the live one is gone":     {files: map[string]string{"CURRENT": "gen-000002\n", "gen-000001/a": "data"}, fails: "cannot be read", left: []string{"CURRENT", "gen-000001"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			for path, content := range tt.files {
				if content == "dir" {
					require.NoError(t, fs.MkdirAll("state/"+path, 0o750))
					continue
				}
				writeFile(t, fs, "state/"+path, content)
			}
			got, err := currentGeneration(fs, "state")
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
			} else {
				require.NoError(t, err)
				require.Equal(t, fs.PathJoin("state", tt.want), got)
				again, err := currentGeneration(fs, "state")
				require.NoError(t, err)
				require.Equal(t, got, again)
			}
			left, err := fs.List("state")
			require.NoError(t, err)
			require.ElementsMatch(t, tt.left, left)
		})
	}
}

// A crash at any moment leaves the old generation or the new one named.
func TestCurrentSurvivesACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	first, err := currentGeneration(fs, "node/state")
	require.NoError(t, err)
	require.NoError(t, fs.MkdirAll("node/state/gen-000002", 0o750))
	require.NoError(t, writeCurrent(fs, "node/state", "gen-000002"))
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, fs.MkdirAll("node/state/gen-000003", 0o750))
	second, err := currentGeneration(crashed, "node/state")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Equal(t, "node/state/gen-000002", second)
}

func TestNextGenerationIsAboveAllNames(t *testing.T) {
	fs := vfs.NewMem()
	for _, n := range []string{"gen-000002", "gen-000007.tmp", "gen-x", "checkpoint-9"} {
		require.NoError(t, fs.MkdirAll("state/"+n, 0o750))
	}
	n, err := nextGeneration(fs, "state")
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
}
