package server

import (
	"net"

	"golang.org/x/sys/unix"
)

// hold makes a TCP listener refuse connections, as if there was no port, and keeps its address:
// no other process can listen on it. resume undoes that.
//
// A socket that listens can go back to being bound only. Without SO_REUSEADDR nobody else gets the
// address meanwhile; with it, connections of an earlier process that still end are no obstacle.
func hold(l *net.TCPListener) error {
	return withSocket(l, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0); err != nil {
			return err
		}
		return unix.Shutdown(fd, unix.SHUT_RD)
	})
}

func resume(l *net.TCPListener) error {
	const backlog = 1<<16 - 1 // the kernel's own limit is below
	return withSocket(l, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
		return unix.Listen(fd, backlog)
	})
}

func withSocket(l *net.TCPListener, do func(fd int) error) (err error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) { err = do(int(fd)) }); failed != nil {
		return failed
	}
	return err
}
