package transport

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"tarry/cluster/nodetls"
)

// boundSilence ends a connection when the other machine does not acknowledge data for a
// while: it is gone, has another address, or its process does not read. Otherwise a
// request would wait for keepalive or for its own deadline.
func boundSilence(c net.Conn, limit time.Duration) error {
	tcp := nodetls.TCP(c)
	if tcp == nil {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("bound the silence of a peer: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("bound the silence of a peer: %w", err)
	}
	return nil
}
