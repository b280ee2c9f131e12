package logstore

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
)

// syncCounter counts the syncs of each kind.
type syncCounter struct {
	types.VFS
	full, data int
}

func (c *syncCounter) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := c.VFS.Create(dir, name, size)
	return countedFile{f, c}, err
}

func (c *syncCounter) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := c.VFS.OpenWriter(dir, name)
	return countedFile{f, c}, err
}

type countedFile struct {
	types.WritableFile
	c *syncCounter
}

func (f countedFile) Sync() error     { f.c.full++; return f.WritableFile.Sync() }
func (f countedFile) SyncData() error { f.c.data++; return syncData(f.WritableFile) }

func TestOnlyTheFirstSyncOfANewSegmentMakesItsNameDurable(t *testing.T) {
	dir := t.TempDir()
	c := &syncCounter{VFS: walfs.New()}
	fs := zeroedSegments{c, vfs.Default, 1 << 20, logEnd{}}
	f, err := fs.Create(dir, "a", 1<<20)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, f.Sync())
	}
	require.Equal(t, []int{1, 2}, []int{c.full, c.data})
	require.NoError(t, f.Close())
}

// The process that created a segment may have ended before its first sync, also of the
// directory. What the next one reads counts as held from then on.
func TestAReopenedSegmentIsDurableBeforeItIsRead(t *testing.T) {
	dir := t.TempDir()
	f, err := walfs.New().Create(dir, "a", 1<<20)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	c := &syncCounter{VFS: walfs.New()}
	var names int
	var fails error
	records := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && op.Path == dir {
			names++
			return fails
		}
		return nil
	}))
	fs := zeroedSegments{c, records, 1 << 20, logEnd{}}
	f, err = fs.OpenWriter(dir, "a")
	require.NoError(t, err)
	require.Equal(t, []int{1, 0, 1}, []int{c.full, c.data, names})
	for range 3 {
		require.NoError(t, f.Sync())
	}
	require.Equal(t, []int{1, 3, 1}, []int{c.full, c.data, names})
	require.NoError(t, f.Close())

	fails = errDisk
	_, err = fs.OpenWriter(dir, "a")
	require.ErrorIs(t, err, errDisk)
	_, err = fs.OpenWriter(dir, "b")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestARealSegmentCanSyncItsDataAlone(t *testing.T) {
	dir := t.TempDir()
	f, err := walfs.New().Create(dir, "a", 1<<20)
	require.NoError(t, err)
	require.Implements(t, (*syscall.Conn)(nil), f)
	require.NoError(t, syncData(f))
	require.NoError(t, f.Close())
	require.Error(t, syncData(f), "it is closed")
	f, err = walfs.New().OpenWriter(dir, "a")
	require.NoError(t, err)
	require.Implements(t, (*syscall.Conn)(nil), f)
	require.NoError(t, f.Close())
}

func TestZerosFollowWhatIsWrittenAndNothingElse(t *testing.T) {
	const size = 3*zeroStep + 100
	dir := t.TempDir()
	stale := bytes.Repeat([]byte{7}, size)
	raw, err := walfs.New().Create(dir, "a", size)
	require.NoError(t, err)
	_, err = raw.WriteAt(stale, 0)
	require.NoError(t, err)
	require.NoError(t, raw.Close())

	f, err := zeroedSegments{walfs.New(), vfs.Default, size, logEnd{}}.OpenWriter(dir, "a")
	require.NoError(t, err)
	defer f.Close()
	want := bytes.Clone(stale)
	write := func(at, n int, zeroedTo int) {
		t.Helper()
		p := bytes.Repeat([]byte{1}, n)
		_, err := f.WriteAt(p, int64(at))
		require.NoError(t, err)
		copy(want[at:], p)
		if zeroedTo > at+n {
			clear(want[at+n : zeroedTo])
		}
		got := make([]byte, size+1)
		read, err := f.ReadAt(got, 0)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, size, read, "the file does not grow")
		require.True(t, bytes.Equal(want, got[:read]))
	}
	write(500, 300, 800+zeroStep)
	write(800, 300, 0)
	write(1100, largeAppend, 0)
	write(1100+largeAppend, zeroStep, 0) // larger than what was zeroed, and nothing more is
	end := 1100 + largeAppend + zeroStep
	write(end, 10, end+10+zeroStep)
	write(end+10, zeroStep, 0)
	end += 10 + zeroStep
	write(end, 10, size)
	write(size-200, 200, 0)
}
