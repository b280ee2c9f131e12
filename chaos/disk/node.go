//go:build linux

package disk

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file or directory of FUSE. Lookups, listings and reads of attributes pass
// through unchanged.
type node struct {
	fs.LoopbackNode
	disk *Disk
}

// root returns the node of the backing directory.
func (d *Disk) root() (*node, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(d.backing, &st); err != nil {
		return nil, err
	}
	data := &fs.LoopbackRoot{Path: d.backing, Dev: st.Dev}
	n := &node{LoopbackNode: fs.LoopbackNode{RootData: data}, disk: d}
	data.RootNode = n
	return n, nil
}

// Lookup finds a file. A number of an inode that is used again is another file, and so is
// every file after a power loss: the kernel closes directories in the background, and one
// that it has not closed yet and that was removed stays empty for it, though the power
// loss has restored it.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	path := filepath.Join(n.path(), name)
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return nil, fs.ToErrno(err)
	}
	var made unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &made); err != nil {
		return nil, fs.ToErrno(err)
	}
	out.Attr.FromStat(&st)
	child := &node{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, disk: n.disk}
	generation := uint64(made.Btime.Sec)*1e9 + uint64(made.Btime.Nsec) + n.disk.losses.Load()
	return n.NewInode(ctx, child, fs.StableAttr{Mode: st.Mode, Ino: st.Ino, Gen: generation}), 0
}

// relative is the node's path below the mount, path the one in the backing tree.
func (n *node) relative() string { return n.Path(n.RootData.RootNode.EmbeddedInode()) }
func (n *node) path() string     { return filepath.Join(n.disk.backing, n.relative()) }

// change runs a change of names in the node's directory.
func (n *node) change(run func(*names, *directory) error) syscall.Errno {
	names := &n.disk.names
	names.mu.Lock()
	defer names.mu.Unlock()
	d, err := names.directory(n.path())
	if err != nil {
		return fs.ToErrno(err)
	}
	err = run(names, d)
	if closed := names.drop(d); err == nil {
		err = closed
	}
	return fs.ToErrno(err)
}

// Create creates a file, or opens one that was created a moment ago.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	var f *file
	errno := n.change(func(names *names, d *directory) error {
		path := filepath.Join(n.path(), name)
		_, err := os.Lstat(path)
		fresh := os.IsNotExist(err)
		f, err = n.disk.open(path, filepath.Join(n.relative(), name), int(flags)|os.O_CREATE, mode)
		if err != nil || !fresh {
			return err
		}
		return names.created(d, name)
	})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	child, errno := n.Lookup(ctx, name, out)
	if errno != 0 {
		return nil, nil, 0, max(errno, f.Release(ctx))
	}
	return child, f, 0, 0
}

// Open implements fs.NodeOpener.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, err := n.disk.open(n.path(), n.relative(), int(flags)&^(syscall.O_CREAT|syscall.O_EXCL|fuse.FMODE_EXEC), 0)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	return f, 0, 0
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	errno := n.change(func(names *names, d *directory) error {
		if err := unix.Mkdirat(d.fd(), name, mode); err != nil {
			return err
		}
		return names.made(d, name)
	})
	if errno != 0 {
		return nil, errno
	}
	return n.Lookup(ctx, name, out)
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.change(func(names *names, d *directory) error { return names.remove(d, name) })
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.change(func(names *names, d *directory) error {
		gone, err := names.directory(filepath.Join(n.path(), name))
		if err != nil {
			return err
		}
		err = names.removeDirectory(d, gone, name)
		if closed := names.drop(gone); err == nil {
			err = closed
		}
		return err
	})
}

// Rename moves a name and replaces a file that has the new one.
func (n *node) Rename(_ context.Context, name string, newParent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	target, ok := newParent.(*node)
	if !ok || flags != 0 {
		return syscall.EINVAL
	}
	return n.change(func(names *names, from *directory) error {
		to, err := names.directory(target.path())
		if err != nil {
			return err
		}
		err = names.rename(from, name, to, newName)
		if closed := names.drop(to); err == nil {
			err = closed
		}
		return err
	})
}

// Link gives a file one more name.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	from, ok := target.(*node)
	if !ok {
		return nil, syscall.EXDEV
	}
	errno := n.change(func(names *names, d *directory) error {
		if err := unix.Linkat(unix.AT_FDCWD, from.path(), d.fd(), name, 0); err != nil {
			return err
		}
		return names.created(d, name)
	})
	if errno != 0 {
		return nil, errno
	}
	return n.Lookup(ctx, name, out)
}

// stream is what an open directory can do, apart from syncs.
type stream interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
}

// listing is an open directory.
type listing struct {
	stream
	node *node
}

// Fsyncdir makes the directory's names durable.
func (l *listing) Fsyncdir(context.Context, uint32) syscall.Errno { return l.node.syncNames() }

// OpendirHandle opens a directory.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	plain, open, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	s, ok := plain.(stream)
	if !ok {
		return nil, 0, syscall.EIO
	}
	return &listing{stream: s, node: n}, open, 0
}

func (n *node) syncNames() syscall.Errno {
	upTo := n.disk.names.position()
	if errno := n.disk.beforeSync(n.relative()); errno != 0 {
		return errno
	}
	d, err := os.Open(n.path())
	if err != nil {
		return fs.ToErrno(err)
	}
	defer d.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(d.Fd()), &st); err != nil {
		return fs.ToErrno(err)
	}
	if err := d.Sync(); err != nil {
		return fs.ToErrno(err)
	}
	if err := n.disk.names.synced(st.Ino, upTo); err != nil {
		return fs.ToErrno(err)
	}
	return fs.ToErrno(n.disk.table.sweep())
}

// Setattr goes through the open file, so that a new size can be undone.
func (n *node) Setattr(ctx context.Context, handle fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, resize := in.GetSize(); !resize {
		return n.LoopbackNode.Setattr(ctx, handle, in, out)
	}
	f, ok := handle.(*file)
	if !ok {
		opened, err := n.disk.open(n.path(), n.relative(), 0, 0)
		if err != nil {
			return fs.ToErrno(err)
		}
		defer func() { _ = opened.Release(ctx) }() // what it changes is done by then
		f = opened
	}
	return f.Setattr(ctx, in, out)
}

// Statfs tells of the disk's limit.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	errno := n.LoopbackNode.Statfs(ctx, out)
	n.disk.limit(out)
	return errno
}

// What follows would bypass the bookkeeping, and no store needs it.

// Symlink is refused.
func (n *node) Symlink(context.Context, string, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Mknod is refused.
func (n *node) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

// Tmpfile is refused.
func (n *node) Tmpfile(context.Context, uint32, uint32, *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.EOPNOTSUPP
}

// CopyFileRange is refused; the kernel then reads and writes.
func (n *node) CopyFileRange(context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64, uint64) (uint32, syscall.Errno) {
	return 0, syscall.EOPNOTSUPP
}
