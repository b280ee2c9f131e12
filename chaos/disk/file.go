//go:build linux

package disk

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// maxRemembered bounds the memory for undoing writes. Beyond it a file's writes are durable
// without a sync, as when the kernel writes back by itself.
const maxRemembered = 256 << 20

// file is a file of the backing tree that is open or has unsynced data. All opens share it.
type file struct {
	disk  *Disk
	os    *os.File // for reading and writing
	plain *fs.LoopbackFile
	ino   uint64
	path  string // below the mount, when it was opened
	uses  int    // opens; under table.mu

	syncing sync.Mutex // held during a sync

	mu      sync.Mutex
	now     *unsynced // since the start of the last sync; nil: nothing
	flight  *unsynced // what the sync under way will make durable
	dropped *unsynced // what failed syncs should have made durable
}

// table finds the file of an inode.
type table struct {
	mu    sync.Mutex
	files map[uint64]*file
}

// open opens the file at path of the backing tree and counts the open.
func (d *Disk) open(path, name string, flags int, mode uint32) (*file, error) {
	flags &^= syscall.O_APPEND | syscall.O_TRUNC | syscall.O_ACCMODE // the kernel has already handled them
	f, err := os.OpenFile(path, flags|os.O_RDWR, os.FileMode(mode))
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.table.mu.Lock()
	defer d.table.mu.Unlock()
	if known := d.table.files[st.Ino]; known != nil {
		known.uses++
		return known, f.Close()
	}
	n := &file{disk: d, os: f, plain: fs.NewLoopbackFileFromOS(f), ino: st.Ino, path: name, uses: 1}
	d.table.files[st.Ino] = n
	return n, nil
}

// Release ends one open. A file with unsynced data stays in the table.
func (f *file) Release(context.Context) syscall.Errno {
	t := &f.disk.table
	t.mu.Lock()
	defer t.mu.Unlock()
	f.uses--
	return fs.ToErrno(t.forget(f))
}

// forget closes a file that is not open and that has nothing to undo, or no name.
func (t *table) forget(f *file) error {
	if f.uses > 0 {
		return nil
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.os.Fd()), &st); err != nil {
		return err
	}
	if f.dirty() && st.Nlink > 0 {
		return nil
	}
	delete(t.files, f.ino)
	f.disk.remembered.Add(-f.clear())
	return f.os.Close()
}

// sweep calls forget for all files.
func (t *table) sweep() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, f := range t.files {
		errs = append(errs, t.forget(f))
	}
	return errors.Join(errs...)
}

func (f *file) dirty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now != nil || f.flight != nil || f.dropped != nil
}

// clear drops everything that is kept for undoing and returns how much memory it used.
func (f *file) clear() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var n int64
	for _, u := range []*unsynced{f.now, f.flight, f.dropped} {
		if u != nil {
			n += u.bytes()
		}
	}
	f.now, f.flight, f.dropped = nil, nil, nil
	return n
}

// change runs a change of n bytes at off. It is called with f.mu held.
func (f *file) change(off, n int64, run func() error) error {
	if f.now == nil {
		info, err := f.os.Stat()
		if err != nil {
			return err
		}
		f.now = &unsynced{size: info.Size(), pages: make(map[int64][]byte)}
	}
	took, err := f.now.remember(f.os, off, n)
	if f.disk.remembered.Add(took) > maxRemembered {
		f.disk.remembered.Add(-f.now.bytes())
		f.now = nil
	}
	if err != nil {
		return err
	}
	return run()
}

func (f *file) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	reach, failure := f.disk.beforeWrite(f.path, off, len(data))
	if reach == 0 && failure != 0 {
		return 0, failure
	}
	off = f.disk.direct(f.path, off)
	f.mu.Lock()
	defer f.mu.Unlock()
	if errno := f.disk.room(f, off+int64(reach)); errno != 0 {
		return 0, errno
	}
	var n int
	err := f.change(off, int64(reach), func() (err error) {
		n, err = syscall.Pwrite(int(f.os.Fd()), data[:reach], off)
		return err
	})
	if err != nil {
		return 0, fs.ToErrno(err)
	}
	f.disk.verdicts.overwrite(f.path, off, int64(n))
	return uint32(n), failure
}

// Fsync makes durable what was written before it began. If it fails that data counts as
// dropped: it can be read until a power loss, and no later sync makes it durable.
func (f *file) Fsync(_ context.Context, flags uint32) syscall.Errno {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	errno := f.disk.beforeSync(f.path)
	f.mu.Lock()
	f.flight, f.now = f.now, nil
	f.mu.Unlock()
	if errno == 0 {
		errno = fs.ToErrno(f.sync(flags))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.flight
	f.flight = nil
	switch {
	case u == nil:
	case errno == 0:
		f.saved(u)
	case f.dropped == nil:
		f.dropped = u
	default:
		u.merge(f.dropped)
		f.dropped = u
	}
	return errno
}

func (f *file) sync(flags uint32) error {
	const dataOnly = 1 // FUSE_FSYNC_FDATASYNC
	if flags&dataOnly != 0 {
		return syscall.Fdatasync(int(f.os.Fd()))
	}
	return syscall.Fsync(int(f.os.Fd()))
}

// saved handles a successful sync. It is called with f.mu held. A page that was written
// again after a failed sync is durable too.
func (f *file) saved(u *unsynced) {
	f.disk.remembered.Add(-u.bytes())
	if f.dropped == nil {
		return
	}
	for p := range u.pages {
		f.disk.remembered.Add(-int64(len(f.dropped.pages[p])))
		delete(f.dropped.pages, p)
	}
	if len(f.dropped.pages) == 0 {
		f.dropped = nil
	}
}

func (f *file) Flush(context.Context) syscall.Errno { return 0 }

func (f *file) Getattr(ctx context.Context, out *fuse.AttrOut) syscall.Errno {
	return f.plain.Getattr(ctx, out)
}

func (f *file) Lseek(ctx context.Context, off uint64, whence uint32) (uint64, syscall.Errno) {
	return f.plain.Lseek(ctx, off, whence)
}

// Setattr changes the size, which can be undone, and attributes that do not matter here.
func (f *file) Setattr(ctx context.Context, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	to, resize := in.GetSize()
	if !resize {
		return f.plain.Setattr(ctx, in, out)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.os.Stat()
	if err != nil {
		return fs.ToErrno(err)
	}
	cut := max(info.Size()-int64(to), 0)
	var errno syscall.Errno
	err = f.change(int64(to), cut, func() error {
		errno = f.plain.Setattr(ctx, in, out)
		return nil
	})
	return max(errno, fs.ToErrno(err))
}

// Allocate reserves space. A hole punched into a file could not be undone, so
// that is refused.
func (f *file) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	if mode&^unix.FALLOC_FL_KEEP_SIZE != 0 {
		return syscall.ENOTSUP
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if errno := f.disk.room(f, int64(off+size)); errno != 0 {
		return errno
	}
	var errno syscall.Errno
	err := f.change(0, 0, func() error {
		errno = f.plain.Allocate(ctx, off, size, mode)
		return nil
	})
	return max(errno, fs.ToErrno(err))
}
