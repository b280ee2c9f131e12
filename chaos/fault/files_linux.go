package fault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileLimit returns the limit on open files of some processes; 0 is this one. Go programs
// raise the soft limit to the hard one when they start.
func fileLimit(pids ...int) (int, error) {
	least := uint64(1 << 20)
	for _, pid := range pids {
		var l unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l); err != nil {
			return 0, fmt.Errorf("read the limit on open files: %w", err)
		}
		least = min(least, l.Cur)
	}
	return int(least), nil
}
