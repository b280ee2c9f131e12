//go:build linux

package disk

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxChanges bounds how many changes of names can be undone. Beyond it the oldest half is
// durable, as with a journal that commits by itself from time to time.
const maxChanges = 2048

// directory is a directory of the backing tree, whatever its present name. The file is open
// while a change needs it.
type directory struct {
	file *os.File
	ino  uint64
	uses int
}

func (d *directory) fd() int { return int(d.file.Fd()) }

// change is one change of names that no sync of a directory has covered.
type change struct {
	seq     uint64
	in      []*directory // a sync of any of them makes the change durable
	covers  *directory   // its earlier changes become durable with this one; may be nil
	undo    func() error
	discard func() error // frees what undo needed; may be nil
}

func (c *change) touches() []*directory {
	if c.covers == nil {
		return c.in
	}
	return append(c.in[:len(c.in):len(c.in)], c.covers)
}

// names has the changes of names that can be undone, in their order. Removed files that may
// be restored are in the lost directory.
type names struct {
	mu      sync.Mutex // held while a change is made, so that the order is right
	lost    *os.File
	serial  uint64
	changes []*change
	open    map[uint64]*directory
}

// directory finds or opens the directory at path.
func (n *names) directory(path string) (*directory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if d := n.open[st.Ino]; d != nil {
		return d, f.Close()
	}
	d := &directory{file: f, ino: st.Ino}
	n.open[st.Ino] = d
	return d, nil
}

// drop closes a directory that no change needs.
func (n *names) drop(d *directory) error {
	if d.uses > 0 || n.open[d.ino] != d {
		return nil
	}
	delete(n.open, d.ino)
	return d.file.Close()
}

// lostName returns an unused name in the lost directory.
func (n *names) lostName() string {
	n.serial++
	return strconv.FormatUint(n.serial, 10)
}

func (n *names) add(c *change) error {
	n.serial++
	c.seq = n.serial
	for _, d := range c.touches() {
		d.uses++
	}
	n.changes = append(n.changes, c)
	if len(n.changes) <= maxChanges {
		return nil
	}
	oldest := n.changes[:maxChanges/2]
	n.changes = append([]*change(nil), n.changes[maxChanges/2:]...)
	return n.makeDurable(oldest)
}

// makeDurable makes changes durable that were removed from the list.
func (n *names) makeDurable(list []*change) error {
	var errs []error
	for _, c := range list {
		if c.discard != nil {
			errs = append(errs, c.discard())
		}
		errs = append(errs, n.release(c))
	}
	return errors.Join(errs...)
}

func (n *names) release(c *change) error {
	var errs []error
	for _, d := range c.touches() {
		d.uses--
		errs = append(errs, n.drop(d))
	}
	return errors.Join(errs...)
}

// synced makes the changes in the directory up to the number durable. A change in two
// directories is one transaction, and makes the earlier changes in the other one durable too.
func (n *names) synced(ino, upTo uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	limits := map[uint64]uint64{ino: upTo}
	var durable, rest []*change
	for i := len(n.changes) - 1; i >= 0; i-- {
		c := n.changes[i]
		covered := false
		for _, d := range c.in {
			covered = covered || c.seq <= limits[d.ino]
		}
		if !covered {
			rest = append(rest, c)
			continue
		}
		durable = append(durable, c)
		for _, d := range c.touches() {
			limits[d.ino] = max(limits[d.ino], c.seq)
		}
	}
	slices.Reverse(rest)
	slices.Reverse(durable)
	n.changes = rest
	return n.makeDurable(durable)
}

// position returns the number of the newest change.
func (n *names) position() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.serial
}

// lose undoes all changes but the first kept ones, newest first.
func (n *names) lose(kept func(total int) int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	keep := kept(len(n.changes))
	for i := len(n.changes) - 1; i >= keep; i-- {
		if err := n.changes[i].undo(); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range n.changes[keep:] {
		errs = append(errs, n.release(c))
	}
	errs = append(errs, n.makeDurable(n.changes[:keep]))
	n.changes = nil
	return errors.Join(errs...)
}

// created records that name is new in d.
func (n *names) created(d *directory, name string) error {
	return n.add(&change{in: []*directory{d}, undo: func() error { return unix.Unlinkat(d.fd(), name, 0) }})
}

// made records that the directory name is new in d.
func (n *names) made(d *directory, name string) error {
	return n.add(&change{in: []*directory{d}, undo: func() error {
		lost := n.lostName()
		if err := unix.Renameat(d.fd(), name, n.fd(), lost); err != nil {
			return err
		}
		return os.RemoveAll(n.lost.Name() + "/" + lost)
	}})
}

func (n *names) fd() int { return int(n.lost.Fd()) }

// remove removes a file's name.
func (n *names) remove(d *directory, name string) error {
	lost := n.lostName()
	if err := unix.Linkat(d.fd(), name, n.fd(), lost, 0); err != nil {
		return err
	}
	if err := unix.Unlinkat(d.fd(), name, 0); err != nil {
		return errors.Join(err, unix.Unlinkat(n.fd(), lost, 0))
	}
	return n.add(&change{
		in:      []*directory{d},
		undo:    func() error { return unix.Renameat(n.fd(), lost, d.fd(), name) },
		discard: func() error { return unix.Unlinkat(n.fd(), lost, 0) },
	})
}

// removeDirectory removes an empty directory's name.
func (n *names) removeDirectory(d, gone *directory, name string) error {
	if entries, err := os.ReadDir(gone.path()); err != nil || len(entries) > 0 {
		return errors.Join(err, unix.ENOTEMPTY)
	}
	lost := n.lostName()
	if err := unix.Renameat(d.fd(), name, n.fd(), lost); err != nil {
		return err
	}
	return n.add(&change{
		in:      []*directory{d},
		covers:  gone,
		undo:    func() error { return unix.Renameat(n.fd(), lost, d.fd(), name) },
		discard: func() error { return unix.Unlinkat(n.fd(), lost, unix.AT_REMOVEDIR) },
	})
}

// path returns a path to the directory that does not depend on its name.
func (d *directory) path() string { return "/proc/self/fd/" + strconv.Itoa(d.fd()) }

// rename moves a name. A file that had the new name goes to the lost directory.
func (n *names) rename(from *directory, oldName string, to *directory, newName string) error {
	lost, replaced := n.lostName(), true
	switch err := unix.Linkat(to.fd(), newName, n.fd(), lost, 0); {
	case errors.Is(err, unix.ENOENT):
		replaced = false
	case err != nil:
		return err // renaming over a directory is not supported
	}
	if err := unix.Renameat(from.fd(), oldName, to.fd(), newName); err != nil {
		if replaced {
			err = errors.Join(err, unix.Unlinkat(n.fd(), lost, 0))
		}
		return err
	}
	c := &change{in: []*directory{from}}
	if to != from {
		c.in = append(c.in, to)
	}
	c.undo = func() error {
		if err := unix.Renameat(to.fd(), newName, from.fd(), oldName); err != nil || !replaced {
			return err
		}
		return unix.Renameat(n.fd(), lost, to.fd(), newName)
	}
	if replaced {
		c.discard = func() error { return unix.Unlinkat(n.fd(), lost, 0) }
	}
	return n.add(c)
}
