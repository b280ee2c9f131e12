package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// logsIn returns the write-ahead logs in a store's directory.
func logsIn(t testing.TB, fsys vfs.FS, dir string) []string {
	names, err := fsys.List(dir)
	require.NoError(t, err)
	logs := slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(logs)
	return logs
}

// storeWithLogs makes a store with several logs, none of them flushed.
func storeWithLogs(t *testing.T) (vfs.FS, Options) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll(testDir, 0o750))
	o := Options{FS: fsys, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}
	db, err := open(o)
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.NoSync))
	}
	require.NoError(t, db.Close())
	return fsys, o
}

func TestAStoreThatLostALogIsRefused(t *testing.T) {
	fsys, o := storeWithLogs(t)
	logs := logsIn(t, fsys, testDir)
	require.NotEmpty(t, logs)
	for _, name := range logs {
		old := path.Join(testDir, name)
		away := path.Join(testDir, "away")
		require.NoError(t, fsys.Rename(old, away))
		_, err := open(o)
		require.ErrorIs(t, err, errWALMissing)
		require.True(t, Damaged(err))
		require.Contains(t, err.Error(), name)
		require.NoError(t, fsys.Rename(away, old))
	}
	for range 3 { // a whole store opens repeatedly
		db, err := open(o)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
}

func TestADamagedWALIndexIsRefused(t *testing.T) {
	fsys, o := storeWithLogs(t)
	good := (&walEntries{manifest: 9, manifestPrefix: filePrefix{5, 6}, logs: map[uint64]filePrefix{4: {size: 100, sum: 7}, 300: {}}}).encode()
	for name, data := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)-1], "zeros": make([]byte, len(good)),
		"longer": append(slices.Clone(good), 0),
	} {
		write(t, fsys, path.Join(testDir, walIndexName), data)
		_, err := open(o)
		require.ErrorIs(t, err, errWALIndex, name)
		require.True(t, Damaged(err))
	}
}

func TestAWALIndexOfAnotherReleaseIsRefused(t *testing.T) {
	old := []byte{1, 4} // a number alone
	old = binary.BigEndian.AppendUint32(old, crc32.Checksum(old, crcTable))
	_, err := decodeWALIndex(old)
	require.ErrorContains(t, err, "format 1, and this release knows only 3")
}

// heldTables prevents flushes: no table can be made.
type heldTables struct {
	vfs.FS
	held chan struct{} // closed to let them go
}

func (f heldTables) Unwrap() vfs.FS { return f.FS }

func (f heldTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-f.held
	}
	return f.FS.Create(name, c)
}

// unflushedLogs returns the files of a store at a moment when several logs have what no
// table has, and its options.
func unflushedLogs(t *testing.T) (files func() vfs.FS, o Options) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll(testDir, 0o750))
	tables := heldTables{mem, make(chan struct{})}
	o = Options{FS: tables, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}
	db, err := open(o)
	require.NoError(t, err)
	for i := range 14 {
		require.NoError(t, db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.Sync))
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	close(tables.held)
	require.NoError(t, db.Close())
	require.Greater(t, len(logsIn(t, left, testDir)), 2)
	return func() vfs.FS { return left.CrashClone(vfs.CrashCloneCfg{}) }, o
}

// Pebble replays a log up to its end between two blocks, and continues with the next one.
func TestALogCutBetweenTwoBlocksIsRefused(t *testing.T) {
	const block = 32 << 10
	files, o := unflushedLogs(t)
	logs := logsIn(t, files(), testDir)
	for i, name := range logs {
		file := path.Join(testDir, name)
		for at := 0; ; at += block {
			o.FS = files()
			data := read(t, o.FS, file)
			if at >= len(data) {
				break
			}
			write(t, o.FS, file, data[:at])
			db, err := open(o)
			if i == len(logs)-1 { // the Raft log has the rest
				require.NoError(t, err, "%s cut at %d", name, at)
				require.NoError(t, db.Close())
				continue
			}
			require.ErrorIs(t, err, errChanged, "%s cut at %d", name, at)
			require.True(t, Damaged(err))
			require.Contains(t, err.Error(), name)
		}
	}
	o.FS = files()
	db, err := open(o)
	require.NoError(t, err, "a whole store opens")
	for i := range 14 {
		_, done, err := db.Get([]byte{byte(i)})
		require.NoError(t, err)
		require.NoError(t, done.Close())
	}
	require.NoError(t, db.Close())
}

// After a crash at any moment every log in the index exists.
func TestTheWALIndexHoldsAfterACrash(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	require.NoError(t, fsys.MkdirAll(testDir, 0o750))
	o := Options{FS: fsys, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}
	db, err := open(o)
	require.NoError(t, err)
	for i := range 60 {
		require.NoError(t, db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.NoSync))
		if i%7 == 0 {
			_, err := db.AsyncFlush()
			require.NoError(t, err)
		}
		o := o
		o.FS = fsys.CrashClone(vfs.CrashCloneCfg{})
		for range 2 { // opening removes logs too
			after, err := open(o)
			require.NoError(t, err)
			require.NoError(t, after.Close())
		}
	}
	require.NoError(t, db.Close())
}

// noIndex is a file system on which the index cannot be replaced.
type noIndex struct{ vfs.FS }

var errNoIndex = errors.New("not this file")

func (f noIndex) Rename(old, name string) error {
	if path.Base(name) == walIndexName {
		return errNoIndex
	}
	return f.FS.Rename(old, name)
}

func TestAWALIndexThatCannotBeWrittenIsFatal(t *testing.T) {
	for name, change := range map[string]func(x *walIndex) error{
		"for a new log":     func(x *walIndex) error { _, err := x.Create(path.Join(testDir, "000001.log"), vfsCategory); return err },
		"for a removed log": func(x *walIndex) error { return x.Remove(path.Join(testDir, "000001.log")) },
	} {
		var fatal error
		fsys := vfs.NewMem()
		require.NoError(t, fsys.MkdirAll(testDir, 0o750))
		x, err := openWALIndex(noIndex{fsys}, testDir, func(err error) { fatal = err })
		require.NoError(t, err)
		require.ErrorIs(t, change(x), errNoIndex, name)
		require.ErrorIs(t, fatal, errNoIndex, name)
	}
}

func FuzzWALIndex(f *testing.F) {
	f.Add((&walEntries{}).encode())
	f.Add((&walEntries{logs: map[uint64]filePrefix{1: {size: 1 << 20, sum: 1 << 31}, 128: {}, 1 << 60: {size: 5}}}).encode())
	f.Add([]byte{walIndexVersion, 1, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := decodeWALIndex(data)
		if err != nil {
			require.Zero(t, entries)
			return
		}
		require.Equal(t, data, entries.encode())
	})
}
