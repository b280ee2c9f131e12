package fsm

import (
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/job/jobpb"
)

// closedDir returns the files of a state of some tables that was closed.
func closedDir(t *testing.T) (fsys *vfs.MemFS, want *Machine) {
	fsys = vfs.NewMem()
	r := &rig{t: t, fs: fsys, o: Options{FS: fsys, MemTableBytes: 64 << 10, OnFatal: func(err error) { t.Error(err) }}, now: rigStart}
	r.open()
	r.one(opSetCluster("the cluster"))
	for range 3 {
		fill(r, 30)
		r.retain("orders", 3_600_000)
	}
	require.NoError(t, r.m.MarkDurable(r.index+2, 1, []byte("members"), 1))
	require.NoError(t, r.m.Close())
	return fsys, r.m
}

// contents returns all files of a file system, by path.
func contents(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	all := make(map[string]string)
	names, err := fsys.List(dir)
	require.NoError(t, err)
	for _, n := range names {
		file := path.Join(dir, n)
		info, err := fsys.Stat(file)
		require.NoError(t, err)
		if info.IsDir() {
			for f, data := range contents(t, fsys, file) {
				all[f] = data
			}
			continue
		}
		f, err := fsys.Open(file)
		require.NoError(t, err)
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		all[file] = string(data)
	}
	return all
}

func setFile(t *testing.T, fsys vfs.FS, file, data string) {
	f, err := fsys.Create(file, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte(data))
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Sync(), f.Close()))
}

func TestCheckDirReadsAStateAndWritesNothing(t *testing.T) {
	fsys, m := closedDir(t)
	require.NoError(t, fsys.Remove(path.Join(m.dir.Live(), "LOCK"))) // it is not made again
	before := contents(t, fsys, rigDir)
	writes := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			t.Errorf("%v of %s", op.Kind, op.Path)
		}
		return nil
	})
	calls := 0
	report, err := CheckDir(rigDir, CheckOptions{FS: errorfs.Wrap(fsys, writes), Progress: func(r *DirReport) error {
		calls++
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, before, contents(t, fsys, rigDir))
	require.Equal(t, m.Applied(), report.Applied)
	require.Equal(t, m.DurableIndex(), report.Durable)
	require.Equal(t, m.ClusterID(), report.ClusterID)
	require.Equal(t, m.Version(), report.Version)
	require.EqualValues(t, 90, report.Totals.Ready+report.Totals.Delayed+report.Totals.Reserved)
	require.Greater(t, report.Tables.Count, 1)
	require.Equal(t, report.Tables.Count+1, calls, "after each table, and at the end")
	require.Positive(t, report.Tables.Bytes)
	require.Positive(t, report.Records)
}

func TestACheckOfADirectoryEndsWhenItIsTold(t *testing.T) {
	fsys, _ := closedDir(t)
	enough := errors.New("enough")
	_, err := CheckDir(rigDir, CheckOptions{FS: fsys, Progress: func(*DirReport) error { return enough }})
	require.ErrorIs(t, err, enough)
	require.False(t, Damaged(err))
}

func TestCheckDirOfADirectoryWithoutAState(t *testing.T) {
	fsys := vfs.NewMem()
	_, err := CheckDir(rigDir, CheckOptions{FS: fsys})
	require.Error(t, err, "there is no directory")
	require.NoError(t, fsys.MkdirAll(path.Join(rigDir, "gen-000001"), 0o700))
	for range 2 {
		report, err := CheckDir(rigDir, CheckOptions{FS: fsys})
		require.NoError(t, err)
		require.Zero(t, report)
		setFile(t, fsys, path.Join(rigDir, "CURRENT"), "gen-000001\n")
	}
}

// A state in which Check finds something is found off line, too.
func TestCheckDirFindsRecordsThatDoNotAgree(t *testing.T) {
	for _, c := range damages() {
		t.Run(c.name, func(t *testing.T) {
			fsys := vfs.NewMem()
			m, err := Open(rigDir, Options{FS: fsys})
			require.NoError(t, err)
			data := encodeEntry(t, rigStart, opAdd(&jobpb.Add{Topic: "t", Id: "x"}), opAdd(&jobpb.Add{Topic: "t"}))
			_, _, err = m.Apply([]Entry{{Index: 1, Term: 1, Data: data}}, false)
			require.NoError(t, err)
			b := m.store.db.NewBatch()
			require.NoError(t, c.do(b))
			require.NoError(t, b.Commit(pebble.NoSync))
			require.NoError(t, m.Close())
			_, err = CheckDir(rigDir, CheckOptions{FS: fsys})
			require.Error(t, err)
		})
	}
}

// Each bit that is flipped in a file in use is found, or it has no effect: the state that opens is
// the one that was written.
func TestCheckDirFindsEveryFlippedBitThatMatters(t *testing.T) {
	fsys, _ := closedDir(t)
	digest := func(fsys vfs.FS) (d string, err error) {
		o := Options{FS: fsys, OnFatal: func(error) {}}
		m, err := Open(rigDir, o)
		if err != nil {
			return "", err
		}
		v := m.View()
		d, err = check.Digest(v, nil)
		return d, errors.Join(err, check.Records(v, nil), v.Close(), m.Close())
	}
	all := contents(t, fsys, rigDir)
	// with returns a copy of the files with other data in one.
	with := func(changed string, data []byte) *vfs.MemFS {
		fsys := vfs.NewMem()
		for file, whole := range all {
			if file == changed {
				whole = string(data)
			}
			require.NoError(t, fsys.MkdirAll(path.Dir(file), 0o700))
			setFile(t, fsys, file, whole)
		}
		return fsys
	}
	want, err := digest(with("", nil))
	require.NoError(t, err)
	for file, data := range all {
		step := max(len(data)/50, 1)
		for at := 0; at < len(data); at += step {
			bad := []byte(data)
			bad[at] ^= 1 << (at % 8)
			setFile(t, fsys, file, string(bad))
			if _, err := CheckDir(rigDir, CheckOptions{FS: fsys}); err == nil {
				if strings.HasSuffix(file, ".sst") { // before its version the end of a table is not used
					require.Greater(t, at, len(data)-53, "of %s", file)
				}
				got, err := digest(with(file, bad))
				require.NoError(t, err, "byte %d of %s", at, file)
				require.Equal(t, want, got, "byte %d of %s", at, file)
			} else {
				require.Contains(t, err.Error(), rigDir)
			}
		}
		setFile(t, fsys, file, data)
	}
	_, err = CheckDir(rigDir, CheckOptions{FS: fsys})
	require.NoError(t, err, "all files are as they were")
}
