package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
)

// forgetful is a disk like Linux's: what a failed sync should have written stays readable, is
// written by no later sync, and is gone after a power loss.
type forgetful struct {
	types.VFS
	failing bool
	open    []*forgetfulFile
}

type forgetfulFile struct {
	types.WritableFile
	disk     *forgetful
	unsynced []written
	dropped  []written
}

// written is what a write has replaced.
type written struct {
	at  int64
	old []byte
}

func (d *forgetful) track(f types.WritableFile, err error) (types.WritableFile, error) {
	file := &forgetfulFile{WritableFile: f, disk: d}
	d.open = append(d.open, file)
	return file, err
}

func (d *forgetful) Create(dir, name string, size uint64) (types.WritableFile, error) {
	return d.track(d.VFS.Create(dir, name, size))
}

func (d *forgetful) OpenWriter(dir, name string) (types.WritableFile, error) {
	dropped := d.open
	f, err := d.track(d.VFS.OpenWriter(dir, name))
	for _, old := range dropped { // one segment in this test
		f.(*forgetfulFile).dropped = append(f.(*forgetfulFile).dropped, old.dropped...)
	}
	return f, err
}

func (f *forgetfulFile) WriteAt(p []byte, at int64) (int, error) {
	old := make([]byte, len(p))
	if _, err := f.ReadAt(old, at); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	f.unsynced = append(f.unsynced, written{at, old})
	return f.WritableFile.WriteAt(p, at)
}

func (f *forgetfulFile) Sync() error { return f.SyncData() }

func (f *forgetfulFile) SyncData() error {
	if f.disk.failing {
		f.disk.failing = false
		f.dropped = append(f.dropped, f.unsynced...)
		f.unsynced = nil
		return errDisk
	}
	// What was written again is on the disk, though its first sync failed.
	for _, w := range f.unsynced {
		for i := range f.dropped {
			d := &f.dropped[i]
			from, to := max(w.at, d.at), min(w.at+int64(len(w.old)), d.at+int64(len(d.old)))
			if from >= to {
				continue
			}
			if _, err := f.ReadAt(d.old[from-d.at:to-d.at], from); err != nil {
				return err
			}
		}
	}
	f.unsynced = nil
	return f.WritableFile.Sync()
}

// losePower takes away what is not on the disk.
func (f *forgetfulFile) losePower(t *testing.T) {
	for _, lost := range append(f.dropped, f.unsynced...) {
		_, err := f.WritableFile.WriteAt(lost.old, lost.at)
		require.NoError(t, err)
	}
}

func entriesFrom(first, n, size int) (entries []*raft.Log) {
	for i := range n {
		index := uint64(first + i)
		entries = append(entries, &raft.Log{Index: index, Term: 1, Data: bytes.Repeat([]byte(fmt.Sprint(index)), size)})
	}
	return entries
}

func TestEntriesBehindAFailedSyncSurviveAPowerLoss(t *testing.T) {
	for name, size := range map[string]int{"small entries": 10, "an append without zeros ahead": 100_000} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			real, err := openDisk(dir, RaftWAL)
			require.NoError(t, err)
			disk := &forgetful{VFS: real.Segments}
			openLog := func() raft.LogStore {
				s, err := Open(dir, Options{Fatal: func(error) {}, SegmentBytes: 16 << 20, Disk: &Disk{Segments: disk, Records: real.Records}})
				require.NoError(t, err)
				t.Cleanup(func() { _ = s.Close() })
				return s.Log
			}
			log := openLog()
			require.NoError(t, log.StoreLogs(entriesFrom(1, 3, size)))
			require.NoError(t, log.StoreLogs(entriesFrom(4, 2, size)))
			disk.failing = true
			require.Error(t, log.StoreLogs(entriesFrom(6, 2, size)))

			log = openLog() // the next process finds the entries of the failed append, and goes on
			last, err := log.LastIndex()
			require.NoError(t, err)
			require.EqualValues(t, 7, last)
			require.NoError(t, log.StoreLogs(entriesFrom(8, 3, size)))
			disk.open[len(disk.open)-1].losePower(t)

			log = openLog()
			for i := uint64(1); i <= 10; i++ {
				var entry raft.Log
				require.NoError(t, log.GetLog(i, &entry), "entry %d", i)
				require.Equal(t, entriesFrom(int(i), 1, size)[0].Data, entry.Data)
			}
		})
	}
}

func TestLastAppendsAreFound(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Fatal: func(err error) { t.Error(err) }, SegmentBytes: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, s.Log.StoreLogs(entriesFrom(1, 1, 1)))
	before, previous := int64(0), int64(0)
	for i, n := range []int{1, 7, 3, 200, 1} {
		first, err := s.Log.LastIndex()
		require.NoError(t, err)
		if i > 0 {
			require.NoError(t, s.Log.StoreLogs(entriesFrom(int(first)+1, n, 1+i*13)))
		}
		last, err := s.Log.LastIndex()
		require.NoError(t, err)
		list, err := segmentList{record{vfs.Default, filepath.Join(dir, logDir), listFile}}.Load("")
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join(dir, logDir, segment.FileName(list.Segments[0])))
		require.NoError(t, err)
		end := int64(len(bytes.TrimRight(data, "\x00"))+7) / 8 * 8
		got, err := scanSegment(bytes.NewReader(data), list.Segments[0], nil)
		require.NoError(t, err)
		require.Equal(t, segmentScan{from: before, to: end, entries: last, used: end}, got)
		before, previous = previous, end
		for _, cut := range []int64{0, 5, segmentHeader, got.from + 3, end - 1} { // a file that is cut ends at a whole append
			got, err := scanSegment(bytes.NewReader(data[:cut]), list.Segments[0], nil)
			require.NoError(t, err)
			require.LessOrEqual(t, got.to, cut)
		}
	}
	require.NoError(t, s.Close())
}

// A sync of the directory may have failed, too, after the files were replaced.
func TestWhatAStartFindsIsStoredAgain(t *testing.T) {
	dir := t.TempDir()
	disk, err := openDisk(dir, RaftWAL)
	require.NoError(t, err)
	replaced := make(map[string]int)
	disk.Records = errorfs.Wrap(disk.Records, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate {
			replaced[strings.TrimSuffix(filepath.Base(op.Path), filepath.Ext(op.Path))]++
		}
		return nil
	}))
	start := func() *Stores {
		s, err := Open(dir, Options{Fatal: func(err error) { t.Error(err) }, SegmentBytes: 1 << 20, Disk: disk})
		require.NoError(t, err)
		return s
	}
	s := start()
	require.NoError(t, s.Stable.SetUint64([]byte(keyTerm), 3))
	require.NoError(t, s.Log.StoreLogs(entriesFrom(1, 1, 1)))
	require.NoError(t, s.Close())

	clear(replaced)
	s = start()
	require.Equal(t, map[string]int{votesFile: 1, listFile: 1}, replaced)
	require.NoError(t, s.Close())
}
