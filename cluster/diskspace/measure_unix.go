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
