package beanstalk

import "golang.org/x/sys/unix"

// hungUp reports whether the other side of a socket has closed it or its sending half, also while
// there is input that was not read.
func hungUp(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}
