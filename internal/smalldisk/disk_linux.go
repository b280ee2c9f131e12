// Package smalldisk mounts a small file system for a test to fill. It needs root; without,
// it skips the test.
package smalldisk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Disk is a small file system, which is unmounted when its test ends.
type Disk struct {
	Dir string // where it is mounted

	t *testing.T
}

// New mounts a Disk.
func New(t *testing.T, megabytes int) *Disk {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skipf("SKIPPED: no small file system can be mounted here (%v); run as root. Nothing shows what a full disk does", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return &Disk{Dir: dir, t: t}
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// Fill fills the disk, except for leave bytes.
func (d *Disk) Fill(leave int64) {
	d.t.Helper()
	d.Free()
	f, err := os.Create(d.filler())
	require.NoError(d.t, err)
	for err = unix.ENOSPC; err == unix.ENOSPC; { // others may write in between
		var s unix.Statfs_t
		require.NoError(d.t, unix.Statfs(d.Dir, &s))
		err = unix.Fallocate(int(f.Fd()), 0, 0, max(int64(s.Bavail)*s.Bsize-leave, 1))
	}
	require.NoError(d.t, err)
	require.NoError(d.t, f.Close())
}

// Free undoes Fill.
func (d *Disk) Free() {
	d.t.Helper()
	if err := os.Remove(d.filler()); !os.IsNotExist(err) {
		require.NoError(d.t, err)
	}
}
