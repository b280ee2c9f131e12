//go:build linux

package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
)

// PowerLoss leaves on the disk what the seed lets survive of a loss of power: all
// that was synced, and of the rest each page with the given probability, and the
// changes of names up to some moment. With 0 nothing unsynced survives, the least
// that POSIX promises; with 1 everything does. No process may have files open.
func (d *Disk) PowerLoss(seed int64, survive float64) error {
	if err := d.table.idle(); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	if err := d.loseData(keeper(r, survive)); err != nil {
		return fmt.Errorf("lose the unsynced data: %w", err)
	}
	err := d.names.lose(func(total int) int {
		switch {
		case survive <= 0:
			return 0
		case survive >= 1:
			return total
		}
		return r.IntN(total + 1)
	})
	if err != nil {
		return fmt.Errorf("lose the unsynced names: %w", err)
	}
	if err := d.table.sweep(); err != nil {
		return fmt.Errorf("after the power loss: %w", err)
	}
	d.losses.Add(1)
	return d.dropCache()
}

// loseData undoes what no sync has covered, in the order of the inodes.
func (d *Disk) loseData(keep func() bool) error {
	for _, f := range d.table.sorted() {
		if f.now != nil {
			if err := f.now.undo(f.os, true, keep); err != nil {
				return err
			}
		}
		if f.dropped != nil {
			if err := f.dropped.undo(f.os, false, keep); err != nil {
				return err
			}
		}
		d.remembered.Add(-f.clear())
	}
	return nil
}

// releaseGrace is how long the kernel may take to tell that the files of a process
// that is gone were closed. It tells so in the background.
const releaseGrace = 3 * time.Second

// idle waits until nobody has a file open.
func (t *table) idle() error {
	var open string
	for deadline := time.Now().Add(releaseGrace); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if open = t.anyOpen(); open == "" {
			return nil
		}
	}
	return fmt.Errorf("%s is still open: the power is lost for all at once", open)
}

// anyOpen is the path of a file that somebody has open, or "".
func (t *table) anyOpen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.files {
		if f.uses > 0 {
			return f.path
		}
	}
	return ""
}

// dropCache makes the kernel forget what it read through the mount.
func (d *Disk) dropCache() error {
	var errs []error
	seen := make(map[*fs.Inode]bool)
	var visit func(n *fs.Inode)
	visit = func(n *fs.Inode) {
		if seen[n] {
			return
		}
		seen[n] = true
		if errno := n.NotifyContent(0, 0); errno != 0 && !unknownToKernel(errno) {
			errs = append(errs, errno)
		}
		for _, child := range n.Children() {
			visit(child)
		}
	}
	visit(d.top.EmbeddedInode())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("drop what the kernel has cached: %w", err)
	}
	return nil
}
