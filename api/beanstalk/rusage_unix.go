//go:build unix

package beanstalk

import (
	"syscall"
	"time"
)

// processorTime is what this process has used; 0 where the system does not say.
func processorTime() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
