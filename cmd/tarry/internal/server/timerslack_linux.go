package server

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is how much later than asked the kernel may wake a sleeping thread.
const timerSlack = time.Millisecond

// relaxTimers sets the timer slack of all threads. Threads that start later inherit it.
// It fails in a binary that uses cgo.
//
// Go's scheduler has a thread (sysmon) that sleeps for 20 us at a time, for some
// milliseconds after the process was idle or a system call took long. A node under load
// is idle for moments and syncs all the time, so this thread never rests: with the
// kernel's default slack of 50 us it used a fifth of a node's processor time
// (docs/benchmarks-choices.md). It takes the processor from a goroutine in a long system
// call for other goroutines; they may wait for that up to 1 ms longer. Timers of an idle
// process may end up to 1 ms later too; Go rounds them up to a millisecond anyway.
func relaxTimers() error {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
