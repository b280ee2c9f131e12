package store

import (
	"archive/tar"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tarry/internal/durable"
)

// storeWithLogs returns the files of a store as version 0.1 wrote them (by revision a3dab3f), at a moment when three of them had what no table had: 14 keys of one byte.
func storeWithLogs(t *testing.T) *vfs.MemFS {
	const made = "testdata/store-with-logs.tar.gz"
	file, err := os.Open(made)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	fsys := vfs.NewCrashableMem()
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		write(t, fsys, path.Join(testDir, h.Name), data)
	}
	for _, dir := range []string{testDir, ""} {
		require.NoError(t, durable.SyncDir(fsys, dir))
	}
	return fsys
}

const keysInLogs = 14

// requireKeys requires that a store has what storeWithLogs has.
func requireKeys(t *testing.T, db *Store) {
	for i := range keysInLogs {
		value, done, err := db.Get([]byte{byte(i)})
		require.NoError(t, err)
		require.Len(t, value, 50<<10)
		require.NoError(t, done.Close())
	}
}

// logsIn returns the write-ahead logs in a store's directory.
func logsIn(t *testing.T, fsys vfs.FS) []string {
	names, err := fsys.List(testDir)
	require.NoError(t, err)
	logs := slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(logs)
	require.Len(t, logs, 3)
	return logs
}

func options(t *testing.T, fsys vfs.FS) Options {
	return Options{FS: fsys, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}
}

func TestAStoreThatLostALogIsRefused(t *testing.T) {
	fsys := storeWithLogs(t)
	for _, name := range logsIn(t, fsys) {
		old := path.Join(testDir, name)
		away := path.Join(testDir, "away")
		require.NoError(t, fsys.Rename(old, away))
		_, err := open(options(t, fsys))
		require.ErrorIs(t, err, errLogMissing)
		require.True(t, Damaged(err))
		require.Contains(t, err.Error(), name)
		require.NoError(t, fsys.Rename(away, old))
	}
	for range 3 { // a whole store opens repeatedly
		db, err := open(options(t, fsys))
		require.NoError(t, err)
		requireKeys(t, db)
		require.NoError(t, db.Close())
	}
}

func TestADamagedManifestIndexIsRefused(t *testing.T) {
	fsys := storeWithLogs(t)
	good := withSum("\x03\x09\x05\x06\x04\x64\x07")
	for name, data := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)-1], "zeros": make([]byte, len(good)),
		"longer": append(slices.Clone(good), 0),
	} {
		write(t, fsys, path.Join(testDir, manifestIndexName), data)
		_, err := open(options(t, fsys))
		require.ErrorIs(t, err, errManifestIndex, name)
		require.True(t, Damaged(err))
	}
}

func TestAManifestIndexOfAnotherReleaseIsRefused(t *testing.T) {
	err := new(manifestIndex).decode(withSum("\x01\x04"))
	require.ErrorContains(t, err, "format 1, and this release knows only 3")
}

// withSum returns the content of LOGS with its checksum.
func withSum(content string) []byte {
	b := []byte(content)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

// Pebble replays a log up to its end between two blocks, and continues with the next one.
func TestALogCutBetweenTwoBlocksIsRefused(t *testing.T) {
	const block = 32 << 10
	whole := storeWithLogs(t)
	logs := logsIn(t, whole)
	for i, name := range logs {
		file := path.Join(testDir, name)
		data := read(t, whole, file)
		for at := 0; at < len(data); at += block {
			fsys := whole.CrashClone(vfs.CrashCloneCfg{})
			write(t, fsys, file, data[:at])
			db, err := open(options(t, fsys))
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
}

// A store with logs is whole after a power failure at any moment of its first opening without
// them, and of what follows.
func TestAStoreWithLogsIsWholeAfterACrashAtAnyMoment(t *testing.T) {
	whole := storeWithLogs(t)
	moments := 0
	var one sync.Mutex // Pebble writes and removes files in goroutines of its own
	crash := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		one.Lock()
		defer one.Unlock()
		moments++
		after := whole.CrashClone(vfs.CrashCloneCfg{})
		for range 2 { // opening removes logs too
			db, err := open(options(t, after))
			require.NoError(t, err, "before %v of %s", op.Kind, op.Path)
			requireKeys(t, db)
			require.NoError(t, db.Close())
		}
		return nil
	})
	o := options(t, errorfs.Wrap(whole, crash))
	db, err := open(o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte{keysInLogs}, []byte("more"), pebble.NoSync))
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())
	require.Greater(t, moments, 20)
}

// noIndex is a file system on which the index cannot be replaced.
type noIndex struct{ vfs.FS }

var errNoIndex = errors.New("not this file")

func (f noIndex) Rename(old, name string) error {
	if path.Base(name) == manifestIndexName {
		return errNoIndex
	}
	return f.FS.Rename(old, name)
}

func TestAManifestIndexThatCannotBeWrittenIsFatal(t *testing.T) {
	var fatal error
	o := options(t, noIndex{storeWithLogs(t)})
	o.OnFatal = func(err error) { fatal = err }
	_, err := open(o)
	require.ErrorIs(t, err, errNoIndex)
	require.ErrorIs(t, fatal, errNoIndex)
}

func FuzzManifestIndex(f *testing.F) {
	f.Add((&manifestIndex{}).encode())
	f.Add(withSum("\x03\x09\x05\x06\x04\xe8\x07\x07\xac\x02\x00\x00"))
	f.Add([]byte{manifestIndexVersion, 1, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var x, again manifestIndex
		if x.decode(data) != nil || len(x.oldLogs) > 0 {
			return
		}
		require.NoError(t, again.decode(x.encode()))
		require.Equal(t, x.number, again.number)
		require.Equal(t, x.prefix, again.prefix)
	})
}
