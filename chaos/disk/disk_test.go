//go:build linux

package disk_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"tarry/chaos/disk"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		mountAndWait()
		return
	}
	goleak.VerifyTestMain(m)
}

// mount returns a disk, or skips the test with the reason.
func mount(t *testing.T) *disk.Disk {
	t.Helper()
	if err := disk.Available(); err != nil {
		t.Skipf("NOT TESTED on this machine: %v", err)
	}
	d, err := disk.Mount(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	_, err := f.WriteString(text)
	require.NoError(t, err)
}

// put creates a file with synced data, without a sync of its directory.
func put(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	write(t, f, text)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func syncDir(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

// content returns the file's content; "-": it does not exist.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	require.NoError(t, err)
	return string(data)
}

func TestADiskWithoutFaultsPassesEverythingThrough(t *testing.T) {
	d := mount(t)
	dir := filepath.Join(d.Path(), "a", "b")
	require.NoError(t, os.MkdirAll(dir, 0o750))
	one, two, three := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(d.Path(), "three")
	put(t, one, "hello")
	require.NoError(t, os.Link(one, two))
	require.NoError(t, os.Rename(two, three))
	f, err := os.OpenFile(three, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	write(t, f, " world")
	require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, 100))
	require.NoError(t, f.Truncate(11))
	require.NoError(t, f.Close())
	require.Equal(t, "hello world", content(t, one), "a hard link is the same file")
	require.Equal(t, "hello world", content(t, filepath.Join(d.Backing(), "three")))

	require.ErrorIs(t, os.Remove(dir), syscall.ENOTEMPTY)
	put(t, filepath.Join(dir, "four"), "replaced")
	require.NoError(t, os.Rename(filepath.Join(dir, "four"), three))
	require.Equal(t, "replaced", content(t, three))
	require.NoError(t, os.RemoveAll(filepath.Join(d.Path(), "a")))
	left, err := os.ReadDir(d.Backing())
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestAMappedFileHasWhatIsWritten(t *testing.T) {
	d := mount(t)
	f, err := os.Create(filepath.Join(d.Path(), "map"))
	require.NoError(t, err)
	write(t, f, "before")
	// Read-only and shared. The pages are faulted in by
	// a system call: a fault in Go code could block this process, which has to
	// serve it.
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("after "), 0)
	require.NoError(t, err)
	require.NoError(t, unix.Madvise(m, unix.MADV_POPULATE_READ))
	require.Equal(t, "after ", string(m[:6]))
	require.NoError(t, unix.Munmap(m))
	require.NoError(t, f.Close())
}

func TestSyncsFailAsOftenAsInjected(t *testing.T) {
	d := mount(t)
	f, err := os.Create(filepath.Join(d.Path(), "wal-1"))
	require.NoError(t, err)
	d.Inject(disk.Faults{SyncErrors: 1})
	require.ErrorIs(t, f.Sync(), syscall.EIO)
	require.NoError(t, f.Sync())
	d.Inject(disk.Faults{SyncErrors: disk.Forever, Under: "wal"})
	for range 3 {
		require.ErrorIs(t, f.Sync(), syscall.EIO)
	}
	syncDir(t, d.Path()) // not under "wal"
	d.Heal()
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.EqualValues(t, 4, d.Counts().SyncErrors)
}

func TestWritesFailOrAreTorn(t *testing.T) {
	d := mount(t)
	path := filepath.Join(d.Path(), "f")
	f, err := os.Create(path)
	require.NoError(t, err)
	d.Inject(disk.Faults{WriteErrors: 1})
	_, err = f.WriteAt([]byte("abcdefgh"), 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, "", content(t, path))
	d.Inject(disk.Faults{TornWrites: 1})
	_, err = f.WriteAt([]byte("abcdefgh"), 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, "abcd", content(t, path))
	d.Heal()
	_, err = f.WriteAt([]byte("abcdefgh"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "abcdefgh", content(t, path))
}

func TestReadsFailOrAreMisdirected(t *testing.T) {
	d := mount(t)
	path := filepath.Join(d.Path(), "f")
	const page = 4096
	put(t, path, strings.Repeat("a", page)+strings.Repeat("b", page))
	read := func(at int64) (string, error) {
		require.NoError(t, d.DropCache())
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		b := make([]byte, 1)
		_, err = unix.Pread(int(f.Fd()), b, at)
		return string(b), err
	}
	d.Inject(disk.Faults{ReadErrors: disk.Forever})
	_, err := read(0)
	require.ErrorIs(t, err, syscall.EIO)
	d.Inject(disk.Faults{MisdirectedReads: disk.Forever, Under: "f"})
	got, err := read(page)
	require.NoError(t, err)
	require.NotEqual(t, "b", got)
	d.Heal()

	d.Latent("f", page+17)
	_, err = read(page)
	require.ErrorIs(t, err, syscall.EIO)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("c", page)), page)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, err = read(page)
	require.NoError(t, err)
	require.Equal(t, "c", got)
}

func TestAMisdirectedWriteSeemsToSucceed(t *testing.T) {
	d := mount(t)
	path := filepath.Join(d.Path(), "f")
	const page = 4096
	put(t, path, strings.Repeat("a", 2*page))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	d.Inject(disk.Faults{MisdirectedWrites: 1})
	_, err = f.WriteAt([]byte("x"), page)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, d.DropCache())
	require.Equal(t, "x"+strings.Repeat("a", 2*page-1), content(t, path))
	require.EqualValues(t, 1, d.Counts().Misdirected)
}

func TestASyncHangsUntilTheDiskIsHealed(t *testing.T) {
	d := mount(t)
	f, err := os.Create(filepath.Join(d.Path(), "f"))
	require.NoError(t, err)
	d.Inject(disk.Faults{HangSyncs: true})
	done := make(chan error, 1)
	go func() { done <- f.Sync() }()
	require.Eventually(t, func() bool { return d.Counts().Delayed == 1 }, time.Minute, time.Millisecond)
	select {
	case err := <-done:
		t.Fatalf("the sync came back: %v", err)
	default:
	}
	// A slow disk: the sync takes part in it, and comes back by itself.
	d.Inject(disk.Faults{SyncDelay: time.Millisecond})
	require.NoError(t, <-done)
	require.NoError(t, f.Sync())
	require.EqualValues(t, 2, d.Counts().Delayed)
	require.NoError(t, f.Close())
}

func TestAFullDiskRefusesWritesUntilSpaceIsFreed(t *testing.T) {
	d := mount(t)
	big := []byte(strings.Repeat("x", 1<<20))
	put(t, filepath.Join(d.Path(), "old"), string(big))
	syncDir(t, d.Path())
	d.SetFree(1 << 20)
	var st syscall.Statfs_t
	require.NoError(t, syscall.Statfs(d.Path(), &st))
	require.EqualValues(t, 1<<20, int64(st.Bavail)*st.Bsize)

	f, err := os.Create(filepath.Join(d.Path(), "new"))
	require.NoError(t, err)
	_, err = f.Write(big)
	require.NoError(t, err)
	_, err = f.Write(big)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, unix.Fallocate(int(f.Fd()), 0, 0, 4<<20), syscall.ENOSPC)
	_, err = f.WriteAt(big, 0)
	require.NoError(t, err, "what is there already needs no room")

	require.NoError(t, os.Remove(filepath.Join(d.Path(), "old")))
	_, err = f.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	_, err = f.Write(big)
	require.NoError(t, err)
	d.Heal()
	_, err = f.Write(big)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// The kernel splits a large write into several calls. If a later one fails, the caller gets
// a short write and tries the rest again, so only a lasting failure is reported.
func TestAFailedWriteFailsAgainAtTheSamePlace(t *testing.T) {
	d := mount(t)
	f, err := os.Create(filepath.Join(d.Path(), "file"))
	require.NoError(t, err)
	defer f.Close()
	at := func(offset int64) error { _, err := f.WriteAt([]byte("x"), offset); return err }
	d.Inject(disk.Faults{WriteErrors: 1})
	require.ErrorIs(t, at(100), syscall.EIO)
	require.ErrorIs(t, at(100), syscall.EIO)
	require.NoError(t, at(200))
	d.Heal()
	require.NoError(t, at(100))
}
