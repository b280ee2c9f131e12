//go:build unix

package beanstalk

import (
	"syscall"
	"time"
)

// processorTime returns the CPU time of this process; 0 where it is unknown.
func processorTime() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
