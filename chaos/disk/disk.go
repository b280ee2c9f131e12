//go:build linux

package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Disk is one mounted directory that can fail. Methods may be called from any goroutine, but
// nothing may use the mount during PowerLoss and Close.
type Disk struct {
	mount, backing string
	server         *fuse.Server
	top            *node

	verdicts   verdicts
	counters   counters
	space      space
	names      names
	table      table
	remembered atomic.Int64  // bytes kept to undo writes
	losses     atomic.Uint64 // of power
}

// Mount creates a disk in dir, an existing directory on a file system with hard links. The
// mount is dir/mount, its files are in dir/files. Existing files there count as durable.
func Mount(dir string) (*Disk, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{mount: filepath.Join(dir, "mount"), backing: filepath.Join(dir, "files")}
	d.table.files = make(map[uint64]*file)
	d.names.open = make(map[uint64]*directory)
	d.space.capacity = Unlimited
	lost := filepath.Join(dir, "lost")
	if err := os.RemoveAll(lost); err != nil {
		return nil, err
	}
	for _, p := range []string{d.mount, d.backing, lost} {
		if err := os.MkdirAll(p, 0o755); err != nil {
			return nil, err
		}
	}
	if d.names.lost, err = os.Open(lost); err != nil {
		return nil, err
	}
	if err := d.serve(); err != nil {
		return nil, errors.Join(fmt.Errorf("mount the disk %s: %w", d.mount, err), d.names.lost.Close())
	}
	return d, nil
}

func (d *Disk) serve() error {
	source, err := mountSource()
	if err != nil {
		return err
	}
	if d.top, err = d.root(); err != nil {
		return err
	}
	// Names are looked up each time, so that a power loss can change them. Attributes and
	// pages are cached by the kernel, and dropped when they change behind it.
	never, long := time.Duration(0), time.Hour
	d.server, err = fs.Mount(d.mount, d.top, &fs.Options{
		EntryTimeout: &never, NegativeTimeout: &never, AttrTimeout: &long,
		NullPermissions: true,
		MountOptions: fuse.MountOptions{
			FsName: source, Name: "tarry", DirectMountStrict: true, DisableXAttrs: true, DisableReadDirPlus: true,
			ExplicitDataCacheControl: true, MaxWrite: 1 << 20,
			Logger: log.New(io.Discard, "", 0), // it logs normal ends of requests
		},
	})
	return err
}

// Path returns the mounted directory, for the process under test.
func (d *Disk) Path() string { return d.mount }

// Backing returns the directory with the files, for inspecting them.
func (d *Disk) Backing() string { return d.backing }

// Close heals the disk and unmounts it. The files stay.
func (d *Disk) Close() error {
	d.Heal()
	if err := d.server.Unmount(); err != nil {
		detached := unix.Unmount(d.mount, unix.MNT_DETACH)
		return errors.Join(fmt.Errorf("the disk %s is still in use: %w", d.mount, err), detached)
	}
	errs := []error{d.names.close(), d.table.close(), d.names.lost.Close()}
	return errors.Join(errs...)
}

func (n *names) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.changes
	n.changes = nil
	return n.makeDurable(list)
}

// sorted returns the known files in an order that a seed repeats.
func (t *table) sorted() []*file {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*file, 0, len(t.files))
	for _, f := range t.files {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.ino, b.ino))
	})
	return list
}

func (t *table) close() error {
	var errs []error
	for _, f := range t.sorted() {
		errs = append(errs, f.os.Close())
	}
	return errors.Join(errs...)
}

// unknownToKernel reports that there is nothing to drop.
func unknownToKernel(e syscall.Errno) bool { return e == syscall.ENOENT }
