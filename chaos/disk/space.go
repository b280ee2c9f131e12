//go:build linux

package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Unlimited is the free space of a disk that is as large as the one below it.
const Unlimited int64 = -1

// blockSize is the unit of st_blocks, and of the sizes that statfs gives.
const (
	statBlock = 512
	dataBlock = 4096
)

// space is a limit on what the files of a disk may hold.
type space struct {
	mu       sync.Mutex
	capacity int64 // bytes; Unlimited without a limit
	used     int64 // bytes, from a walk of the backing tree plus what was granted since
}

// SetFree limits the disk: so many bytes are free from now on, and what is
// removed becomes free again. Writes past that fail with ENOSPC, statfs tells of
// it. Unlimited ends the limit.
func (d *Disk) SetFree(bytes int64) {
	s := &d.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes == Unlimited {
		s.capacity = Unlimited
		return
	}
	s.used = d.measure()
	s.capacity = s.used + bytes
}

// measure is what the files below the mount hold. Files that vanish meanwhile do
// not count. It takes a walk of some hundred files.
func (d *Disk) measure() int64 {
	var total int64
	_ = filepath.WalkDir(d.backing, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // it has just been removed
		}
		if info, err := e.Info(); err == nil {
			total += allocated(info)
		}
		return nil
	})
	return total
}

func allocated(info os.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	return st.Blocks * statBlock
}

// room reports whether the file may grow to hold the byte before end; 0: it may.
func (d *Disk) room(f *file, end int64) syscall.Errno {
	s := &d.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity == Unlimited {
		return 0
	}
	info, err := f.os.Stat()
	if err != nil {
		return syscall.EIO
	}
	more := end - allocated(info)
	if more <= 0 {
		return 0
	}
	if s.used+more > s.capacity {
		s.used = d.measure()
	}
	if s.used+more > s.capacity {
		d.counters.refused.Add(1)
		return syscall.ENOSPC
	}
	s.used += more
	return 0
}

// limit puts the limited sizes into the answer of statfs.
func (d *Disk) limit(out *fuse.StatfsOut) {
	s := &d.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity == Unlimited {
		return
	}
	s.used = d.measure()
	// The size stays that of the disk below, as if others had filled it: the
	// server's automatic low-water mark is a share of it.
	out.Blocks = out.Blocks * uint64(out.Bsize) / dataBlock
	out.Bsize, out.Frsize = dataBlock, dataBlock
	out.Bfree = uint64(max(s.capacity-s.used, 0)) / dataBlock
	out.Bavail = out.Bfree
}
