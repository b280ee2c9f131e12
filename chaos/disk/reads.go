//go:build linux

package disk

import (
	"context"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// badPage is a page that cannot be read until it is written again.
type badPage struct {
	path string
	page int64
}

// Latent makes the page of a file at an offset unreadable, as a sector that went bad after it
// was written: reads of it fail with EIO until it is written again, or the disk is healed. The
// path is that below the mount. The kernel may have the page in its cache: see DropCache.
func (d *Disk) Latent(path string, offset int64) {
	v := &d.verdicts
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bad == nil {
		v.bad = map[badPage]struct{}{}
	}
	v.bad[badPage{path, offset / pageSize}] = struct{}{}
}

// overwrite makes the pages of a write readable again.
func (v *verdicts) overwrite(path string, offset, size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := offset / pageSize; len(v.bad) > 0 && p*pageSize < offset+size; p++ {
		delete(v.bad, badPage{path, p})
	}
}

func (v *verdicts) unreadable(path string, offset, size int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := offset / pageSize; len(v.bad) > 0 && p*pageSize < offset+size; p++ {
		if _, bad := v.bad[badPage{path, p}]; bad {
			v.struck = path
			return true
		}
	}
	return false
}

// beforeRead returns the place that a read gets its data from, and its error; 0: none.
func (d *Disk) beforeRead(path string, offset int64, size int) (int64, syscall.Errno) {
	if d.verdicts.unreadable(path, offset, int64(size)) {
		d.counters.readErrors.Add(1)
		return offset, syscall.EIO
	}
	if d.verdicts.skipRead(path) {
		return offset, 0
	}
	if d.verdicts.spend(path, func(f *Faults) *int { return &f.ReadErrors }) {
		d.counters.readErrors.Add(1)
		return offset, syscall.EIO
	}
	if d.verdicts.spend(path, func(f *Faults) *int { return &f.MisdirectedReads }) {
		d.counters.misdirected.Add(1)
		return elsewhere(offset), 0
	}
	return offset, 0
}

// skipRead counts down the reads that are spared.
func (v *verdicts) skipRead(path string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.faults.SparedReads == 0 || !strings.Contains(path, v.faults.Under) {
		return false
	}
	v.faults.SparedReads--
	return true
}

// elsewhere is where a misdirected call goes: to a page nearby.
func elsewhere(offset int64) int64 {
	if offset >= pageSize {
		return offset - pageSize
	}
	return offset + pageSize
}

func (f *file) Read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	from, errno := f.disk.beforeRead(f.path, off, len(buf))
	if errno != 0 {
		return nil, errno
	}
	return f.plain.Read(ctx, buf, from)
}
