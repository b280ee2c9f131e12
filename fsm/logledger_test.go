package fsm

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// logsIn lists the write-ahead logs in a store's directory.
func logsIn(t testing.TB, fsys vfs.FS, dir string) []string {
	names, err := fsys.List(dir)
	require.NoError(t, err)
	logs := slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(logs)
	return logs
}

// storeWithLogs leaves a store with several logs of which none is flushed.
func storeWithLogs(t *testing.T) (vfs.FS, Options) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll(rigDir, 0o750))
	o := Options{FS: fsys, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}.withDefaults()
	s, err := openStore(rigDir, o)
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, s.db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.NoSync))
	}
	require.NoError(t, s.close())
	return fsys, o
}

func TestAStoreThatLostOneOfItsLogsIsRefused(t *testing.T) {
	fsys, o := storeWithLogs(t)
	logs := logsIn(t, fsys, rigDir)
	require.NotEmpty(t, logs)
	for _, name := range logs {
		old := path.Join(rigDir, name)
		away := path.Join(rigDir, "away")
		require.NoError(t, fsys.Rename(old, away))
		_, err := openStore(rigDir, o)
		require.ErrorIs(t, err, errLogMissing)
		require.True(t, Damaged(err))
		require.Contains(t, err.Error(), name)
		require.NoError(t, fsys.Rename(away, old))
	}
	for range 3 { // and what is whole opens again and again
		s, err := openStore(rigDir, o)
		require.NoError(t, err)
		require.NoError(t, s.close())
	}
}

func TestADamagedLedgerIsRefused(t *testing.T) {
	fsys, o := storeWithLogs(t)
	good := encodeLedger(ledgerNotes{manifest: 9, held: content{5, 6}, logs: map[uint64]content{4: {size: 100, sum: 7}, 300: {}}})
	for name, data := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)-1], "zeros": make([]byte, len(good)),
		"longer": append(slices.Clone(good), 0),
	} {
		write(t, fsys, path.Join(rigDir, ledgerName), data)
		_, err := openStore(rigDir, o)
		require.ErrorIs(t, err, errLedger, name)
		require.True(t, Damaged(err))
	}
}

func TestALedgerOfAnotherReleaseIsToldAsThat(t *testing.T) {
	old := []byte{1, 4} // a number alone
	old = binary.BigEndian.AppendUint32(old, crc32.Checksum(old, ledgerTable))
	_, err := decodeLedger(old)
	require.ErrorContains(t, err, "format 1, and this release knows only 3")
}

// heldTables keeps tables from being made, so that no log is flushed away.
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

// unflushedLogs are the files of a store at a moment when several logs hold what
// no table does, and its options.
func unflushedLogs(t *testing.T) (files func() vfs.FS, o Options) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll(rigDir, 0o750))
	tables := heldTables{mem, make(chan struct{})}
	o = Options{FS: tables, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}.withDefaults()
	s, err := openStore(rigDir, o)
	require.NoError(t, err)
	for i := range 14 {
		require.NoError(t, s.db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.Sync))
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	close(tables.held)
	require.NoError(t, s.close())
	require.Greater(t, len(logsIn(t, left, rigDir)), 2)
	return func() vfs.FS { return left.CrashClone(vfs.CrashCloneCfg{}) }, o
}

// Pebble replays a log to where it ends between two blocks, and goes on with the
// next one.
func TestALogCutBetweenTwoBlocksIsRefused(t *testing.T) {
	const block = 32 << 10
	files, o := unflushedLogs(t)
	logs := logsIn(t, files(), rigDir)
	for i, name := range logs {
		file := path.Join(rigDir, name)
		for at := 0; ; at += block {
			o.FS = files()
			data := read(t, o.FS, file)
			if at >= len(data) {
				break
			}
			write(t, o.FS, file, data[:at])
			s, err := openStore(rigDir, o)
			if i == len(logs)-1 { // the Raft log has the rest
				require.NoError(t, err, "%s cut at %d", name, at)
				require.NoError(t, s.close())
				continue
			}
			require.ErrorIs(t, err, errChanged, "%s cut at %d", name, at)
			require.True(t, Damaged(err))
			require.Contains(t, err.Error(), name)
		}
	}
	o.FS = files()
	s, err := openStore(rigDir, o)
	require.NoError(t, err, "what is whole opens")
	for i := range 14 {
		_, done, err := s.db.Get([]byte{byte(i)})
		require.NoError(t, err)
		require.NoError(t, done.Close())
	}
	require.NoError(t, s.close())
}

func read(t *testing.T, fsys vfs.FS, file string) []byte {
	f, err := fsys.Open(file)
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return data
}

func write(t *testing.T, fsys vfs.FS, file string, data []byte) {
	f, err := fsys.Create(file, vfsCategory)
	require.NoError(t, err)
	_, err = f.Write(slices.Clone(data))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// At each moment a crash leaves no log in the ledger that is not there.
func TestTheLedgerHoldsAtEachMoment(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	require.NoError(t, fsys.MkdirAll(rigDir, 0o750))
	o := Options{FS: fsys, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}.withDefaults()
	s, err := openStore(rigDir, o)
	require.NoError(t, err)
	for i := range 60 {
		require.NoError(t, s.db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.NoSync))
		if i%7 == 0 {
			_, err := s.db.AsyncFlush()
			require.NoError(t, err)
		}
		o := o
		o.FS = fsys.CrashClone(vfs.CrashCloneCfg{})
		for range 2 { // opening removes logs too
			after, err := openStore(rigDir, o)
			require.NoError(t, err)
			require.NoError(t, after.close())
		}
	}
	require.NoError(t, s.close())
}

// noLedger is a file system that does not take the ledger any more.
type noLedger struct{ vfs.FS }

var errNoLedger = errors.New("not this file")

func (f noLedger) Rename(old, name string) error {
	if path.Base(name) == ledgerName {
		return errNoLedger
	}
	return f.FS.Rename(old, name)
}

func TestALedgerThatCannotBeWrittenEndsTheProcess(t *testing.T) {
	for name, change := range map[string]func(l *logLedger) error{
		"for a new log":     func(l *logLedger) error { _, err := l.Create(path.Join(rigDir, "000001.log"), vfsCategory); return err },
		"for a removed log": func(l *logLedger) error { return l.Remove(path.Join(rigDir, "000001.log")) },
	} {
		var fatal error
		fsys := vfs.NewMem()
		require.NoError(t, fsys.MkdirAll(rigDir, 0o750))
		l, err := openLedger(noLedger{fsys}, rigDir, func(err error) { fatal = err })
		require.NoError(t, err)
		require.ErrorIs(t, change(l), errNoLedger, name)
		require.ErrorIs(t, fatal, errNoLedger, name)
	}
}

func FuzzLedger(f *testing.F) {
	f.Add(encodeLedger(ledgerNotes{}))
	f.Add(encodeLedger(ledgerNotes{logs: map[uint64]content{1: {size: 1 << 20, sum: 1 << 31}, 128: {}, 1 << 60: {size: 5}}}))
	f.Add([]byte{ledgerVersion, 1, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		logs, err := decodeLedger(data)
		if err != nil {
			require.Zero(t, logs)
			return
		}
		require.Equal(t, data, encodeLedger(logs))
	})
}
