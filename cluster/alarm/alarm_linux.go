package alarm

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// timerFD is a timer of the kernel. The timer slack of threads does not apply to it.
type timerFD struct {
	fd      int // open until close
	file    *os.File
	reading sync.WaitGroup
}

func newExact(rings func()) (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return newTimerFD(fd, rings)
}

// newTimerFD takes over fd. It fails if the poller cannot wait for it.
func newTimerFD(fd int, rings func()) (alarm, error) {
	t := &timerFD{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
	if err := t.file.SetReadDeadline(time.Time{}); err != nil {
		t.file.Close() // its error says nothing more
		return nil, err
	}
	t.reading.Go(func() {
		var expirations [8]byte
		for {
			if _, err := t.file.Read(expirations[:]); err != nil {
				return // it was closed
			}
			rings()
		}
	})
	return t, nil
}

func (t *timerFD) reset(d time.Duration) error {
	// Zero would disarm it.
	set := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, time.Nanosecond)))}
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(t.fd, 0, &set, nil))
}

func (t *timerFD) stop() error {
	return os.NewSyscallError("timerfd_settime", unix.TimerfdSettime(t.fd, 0, &unix.ItimerSpec{}, nil))
}

func (t *timerFD) close() {
	t.file.Close() // its only error is that it was closed before
	t.reading.Wait()
}
