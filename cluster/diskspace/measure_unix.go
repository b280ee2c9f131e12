//go:build linux || darwin

package diskspace

import "golang.org/x/sys/unix"

// measure asks the operating system. Free leaves out what is kept for root.
func measure(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// SameDisk reports whether two files are on one file system; false if that is not known.
func SameDisk(a, b string) bool {
	var of [2]unix.Stat_t
	return unix.Stat(a, &of[0]) == nil && unix.Stat(b, &of[1]) == nil && of[0].Dev == of[1].Dev
}
