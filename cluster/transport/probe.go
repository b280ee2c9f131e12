package transport

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// Presence is what a machine says when somebody knocks at a port.
type Presence int

const (
	Present Presence = iota // the port takes connections; its process may hang all the same
	Ended                   // the machine is there and nobody listens: the process that did has ended
	Absent                  // no answer, or no way there
)

// Knock connects to address, host:port, and says nothing. It blocks until the
// machine has answered or ctx ends, which counts as no answer. The machine answers
// for its process, so a busy or paused process is Present.
func Knock(ctx context.Context, address string) Presence {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = c.Close() // nothing was sent
		return Present
	case errors.Is(err, syscall.ECONNREFUSED):
		return Ended
	default:
		return Absent
	}
}
