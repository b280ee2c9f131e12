package backupschedule

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache asks the kernel to forget the synced pages of a file. It is advice: a failure
// changes nothing.
func dropCache(f *os.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
