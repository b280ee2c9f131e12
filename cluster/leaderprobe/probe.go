package leaderprobe

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// presence is what a probe finds at a port.
type presence int

const (
	present presence = iota // the port accepts connections, though its process may hang
	ended                   // the machine refuses connections: the process has ended
	absent                  // no reply, or no route
)

// probe connects to address, host:port, and sends nothing. It blocks until the machine
// has replied or ctx ends, which counts as no reply. The kernel replies for the
// process, so a busy or stopped process is present.
func probe(ctx context.Context, address string) presence {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = c.Close() // nothing was sent
		return present
	case errors.Is(err, syscall.ECONNREFUSED):
		return ended
	default:
		return absent
	}
}
