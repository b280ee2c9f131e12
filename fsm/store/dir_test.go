package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

func TestOpenDir(t *testing.T) {
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
				write(t, fs, "state/"+path, []byte(content))
			}
			d, err := OpenDir("state", Options{FS: fs})
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
			} else {
				require.NoError(t, err)
				require.Equal(t, fs.PathJoin("state", tt.want), d.Live())
				again, err := OpenDir("state", Options{FS: fs})
				require.NoError(t, err)
				require.Equal(t, d.Live(), again.Live())
			}
			left, err := fs.List("state")
			require.NoError(t, err)
			require.ElementsMatch(t, tt.left, left)
		})
	}
}

// A sync of the directory may have failed after CURRENT was replaced, so that the disk still has
// the old one.
func TestCurrentIsStoredAgainBeforeOldGenerationsAreRemoved(t *testing.T) {
	mem := vfs.NewMem()
	for path, content := range map[string]string{"CURRENT": "gen-000002\n", "gen-000002/a": "live", "gen-000001/a": "old"} {
		write(t, mem, "state/"+path, []byte(content))
	}
	var done []string
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpRename:
			done = append(done, "replace")
		case op.Kind == errorfs.OpRemoveAll:
			done = append(done, "remove "+mem.PathBase(op.Path))
		}
		return nil
	}))
	_, err := OpenDir("state", Options{FS: fs})
	require.NoError(t, err)
	require.Equal(t, []string{"replace", "remove gen-000001"}, done)
}

// After a crash at any moment CURRENT names the old generation or the new one.
func TestCurrentSurvivesACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d, err := OpenDir("node/state", Options{FS: fs})
	require.NoError(t, err)
	first := d.Live()
	require.NoError(t, fs.MkdirAll("node/state/gen-000002", 0o750))
	require.NoError(t, d.SetLive("node/state/gen-000002"))
	require.Equal(t, "node/state/gen-000002", d.Live())
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, fs.MkdirAll("node/state/gen-000003", 0o750))
	d, err = OpenDir("node/state", Options{FS: crashed})
	require.NoError(t, err)
	require.NotEqual(t, first, d.Live())
	require.Equal(t, "node/state/gen-000002", d.Live())
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

// CURRENT names a generation or is refused, and what writes it is understood.
func FuzzCurrent(f *testing.F) {
	for _, s := range []string{"gen-000001\n", "gen-000001", "../../etc/passwd\n", "", "gen-0000000000000000000001\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := vfs.NewMem()
		write(t, fs, fs.PathJoin(testDir, currentName), data)
		name, err := readCurrent(fs, testDir)
		if err != nil {
			require.Less(t, len(err.Error()), 500)
			return
		}
		require.Equal(t, name+"\n", string(data))
		require.NoError(t, writeCurrent(fs, testDir, name))
		again, err := readCurrent(fs, testDir)
		require.NoError(t, err)
		require.Equal(t, name, again)
	})
}
