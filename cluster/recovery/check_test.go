package recovery

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/cluster/logstore"
)

// contentsBelow are the hashes of all files below a directory.
func contentsBelow(t *testing.T, dir string) map[string][32]byte {
	found := map[string][32]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[path] = sha256.Sum256(data)
		return err
	}))
	return found
}

func TestCheckNamesWhatIsDamagedAndChangesNothing(t *testing.T) {
	const wal = "shard-0/raft/wal/"
	flip := func(at int) func([]byte) []byte {
		return func(data []byte) []byte { data[at] ^= 1 << 6; return data }
	}
	gone := func([]byte) []byte { return nil }
	for name, tt := range map[string]struct {
		file   string // a pattern; empty: nothing is damaged
		damage func([]byte) []byte
		part   string
		says   string
	}{
		"whole":                {},
		"identity":             {"node.json", flip(20), "identity", "is damaged"},
		"owner of the state":   {"shard-0/fsm/owner", flip(3), "identity", "parts of two data directories"},
		"votes":                {"shard-0/raft/votes", flip(5), "votes", "its checksum is wrong"},
		"votes gone":           {"shard-0/raft/votes", gone, "votes", "are lost or of an older copy"},
		"header of an entry":   {wal + "*.wal", flip(36), "log", "the checksum of the last append is wrong"},
		"segment gone":         {wal + "*.wal", gone, "log", "9 entries are lost"},
		"list gone":            {wal + "segments", gone, "log", "list of segments of the log is missing"},
		"watermark gone":       {wal + "watermark", gone, "log", "it is missing"},
		"table":                {"shard-0/fsm/gen-*/*.sst", flip(30), "state", ""},
		"generation gone":      {"shard-0/fsm/CURRENT", gone, "state", "CURRENT is missing"},
		"name of the manifest": {"shard-0/fsm/gen-*/marker.manifest.*", gone, "state", "marker.manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			data := lostNode(t, 7, 9)
			if tt.file != "" {
				files, err := filepath.Glob(filepath.Join(data, tt.file))
				require.NoError(t, err)
				require.NotEmpty(t, files)
				content, err := os.ReadFile(files[0])
				require.NoError(t, err)
				if content = tt.damage(content); content == nil {
					require.NoError(t, os.Remove(files[0]))
				} else {
					require.NoError(t, os.WriteFile(files[0], content, 0o600))
				}
			}
			before := contentsBelow(t, data)
			temp := t.TempDir()
			found, err := Check(data, temp)
			require.NoError(t, err)
			require.Equal(t, before, contentsBelow(t, data))
			require.Empty(t, contentsBelow(t, temp))
			if tt.file == "" {
				require.Empty(t, found.Problems)
				require.EqualValues(t, 7, found.AppliedIndex)
				require.EqualValues(t, 5, found.Counts.Jobs())
				require.Equal(t, []uint64{1, 9, 9}, []uint64{found.Log.First, found.Log.Last, found.Log.Acknowledged})
				return
			}
			require.NotEmpty(t, found.Problems)
			require.Equal(t, tt.part, found.Problems[0].Part, "%v", found.Problems)
			require.ErrorContains(t, found.Problems[0].Err, tt.says)
		})
	}
}

func TestACopyWithoutTheLockIsChecked(t *testing.T) {
	data := lostNode(t, 7, 9)
	require.NoError(t, os.Remove(filepath.Join(data, "lock")))
	before := contentsBelow(t, data)
	found, err := Check(data, t.TempDir())
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	require.EqualValues(t, 5, found.Counts.Jobs())
	require.Equal(t, before, contentsBelow(t, data))

	_, err = Check(t.TempDir(), t.TempDir())
	require.ErrorContains(t, err, "is no data directory of a node")
}

// Of a log that is damaged at its end the entries before the damage can be recovered, and nothing
// else counts as all that there is.
func TestWhatADamagedLogStillHasIsRecoveredOnlyOnRequest(t *testing.T) {
	data := lostNode(t, 7, 9)
	dir, err := datadir.OpenStopped(data)
	require.NoError(t, err)
	s, err := openStores(dir, false, false)
	require.NoError(t, err)
	for i := uint64(10); i < 16; i += 3 {
		require.NoError(t, s.log.Log.StoreLogs([]*raft.Log{addEntry(t, i), addEntry(t, i+1), addEntry(t, i+2)}))
	}
	require.NoError(t, errors.Join(s.close(), dir.Close()))
	files, err := filepath.Glob(filepath.Join(data, "shard-0/raft/wal/*.wal"))
	require.NoError(t, err)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	content[bytes.Index(content, []byte("job-11"))] ^= 1
	require.NoError(t, os.WriteFile(files[0], content, 0o600))

	_, err = Inspect(data)
	require.ErrorIs(t, err, logstore.ErrFileDamaged)
	_, err = Recover(t.Context(), data)
	require.ErrorIs(t, err, logstore.ErrFileDamaged)
	found, err := Check(data, t.TempDir())
	require.NoError(t, err)
	require.Equal(t, []uint64{9, 15}, []uint64{found.Log.Last, found.Log.Acknowledged})

	done, err := RecoverReadable(t.Context(), data)
	require.NoError(t, err)
	require.EqualValues(t, 9, done.Before.LastIndex)
	require.EqualValues(t, 7, done.Counts.Jobs())
	found, err = Check(data, t.TempDir())
	require.NoError(t, err)
	require.Empty(t, found.Problems)
}

// A recovery that could not end is not begun: no node would start in the directory any more.
func TestWhatCannotBeRecoveredIsKnownBefore(t *testing.T) {
	damagedLog := Problem{"log", logstore.ErrFileDamaged}
	wal := string(logstore.RaftWAL)
	for name, c := range map[string]struct {
		found CheckReport
		says  string
	}{
		"the log":                         {CheckReport{LogStore: wal, Problems: []Problem{damagedLog}}, ""},
		"the log, and it was interrupted": {CheckReport{LogStore: wal, Problems: []Problem{{"identity", ErrBegun}, damagedLog}}, ""},
		"nothing":                         {CheckReport{LogStore: wal}, "the log is not damaged"},
		"the state alone":                 {CheckReport{LogStore: wal, Problems: []Problem{{"state", errors.New("a table")}}}, "this one is whole; what is damaged: state: a table"},
		"the state, too":                  {CheckReport{LogStore: wal, Problems: []Problem{{"state", errors.New("a table")}, damagedLog}}, "also: state: a table"},
		"an entry in the state":           {CheckReport{LogStore: wal, AppliedIndex: 7, Log: logstore.Found{FirstDamaged: 7}, Problems: []Problem{damagedLog}}, ""},
		"an entry behind the state":       {CheckReport{LogStore: wal, AppliedIndex: 7, Log: logstore.Found{FirstDamaged: 8}, Problems: []Problem{damagedLog}}, "entry 8 is"},
		"a log of raft-boltdb":            {CheckReport{LogStore: string(logstore.RaftBoltDB), Problems: []Problem{damagedLog}}, "raft-boltdb cannot be removed"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.says == "" {
				require.NoError(t, c.found.Readable())
			} else {
				require.ErrorContains(t, c.found.Readable(), c.says)
			}
		})
	}
}
